package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

const (
	actionSilence    = "silence"
	actionEndSilence = "end silence"
)

// silenceRequest is the body of a request to add or to end a silence.
type silenceRequest struct {
	Matchers []incident.Matcher `json:"matchers"`
	Duration string             `json:"duration"`
	Comment  string             `json:"comment"`
	By       string             `json:"by"`
}

// readSilence reads the body; By becomes the name of the sender. An empty body is an
// empty object.
func readSilence(r *http.Request) (in silenceRequest, err error) {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return in, &queryError{"body", "want a JSON object with the fields of docs/api.md"}
	}
	in.By, err = who(r, in.By)
	return in, err
}

type apiDone struct {
	ID int64 `json:"id,omitempty"`
	OK bool  `json:"ok"`
}

// addSilence stores the silence that the body describes.
func (h *Handler) addSilence(ctx context.Context, _ *query, r *http.Request) (any, error) {
	in, err := readSilence(r)
	if err != nil {
		return nil, err
	}
	length, err := time.ParseDuration(in.Duration)
	if err != nil {
		return nil, &queryError{"duration", "want one such as 90m or 12h"}
	}
	now := time.Now()
	id, err := h.cfg.Store.AddSilence(ctx, incident.Silence{
		Matchers: in.Matchers, Start: now, End: now.Add(length), Author: in.By, Comment: in.Comment,
	})
	if err != nil {
		return nil, err
	}
	return apiDone{ID: id, OK: true}, h.audit(r, in.By, actionSilence, strconv.FormatInt(id, 10),
		fmt.Sprintf("%v for %v: %s", in.Matchers, length, in.Comment))
}

// endSilence ends the silence that the path names.
func (h *Handler) endSilence(ctx context.Context, _ *query, r *http.Request) (any, error) {
	in, err := readSilence(r)
	if err != nil {
		return nil, err
	}
	if in.Matchers != nil || in.Duration != "" || in.Comment != "" {
		return nil, &queryError{"body", "want no field but by"}
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, incident.ErrNotFound
	}
	if err := h.cfg.Store.EndSilence(ctx, id, in.By, time.Now()); err != nil {
		return nil, err
	}
	return apiDone{OK: true}, h.audit(r, in.By, actionEndSilence, strconv.FormatInt(id, 10), "")
}
