package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// body reads a JSON object; an empty body is an empty object.
func body(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return &queryError{"body", "want a JSON object with the fields of docs/api.md"}
	}
	return nil
}

type apiDone struct {
	ID int64 `json:"id,omitempty"`
	OK bool  `json:"ok"`
}

func (h *Handler) apiSilence(ctx context.Context, _ *query, r *http.Request) (any, error) {
	var s struct {
		Matchers []incident.Matcher `json:"matchers"`
		Duration string             `json:"duration"`
		Comment  string             `json:"comment"`
		By       string             `json:"by"`
	}
	if err := body(r, &s); err != nil {
		return nil, err
	}
	length, err := time.ParseDuration(s.Duration)
	if err != nil {
		return nil, &queryError{"duration", "want one such as 90m or 12h"}
	}
	id, err := h.addSilence(ctx, r, incident.Silence{Matchers: s.Matchers, Comment: s.Comment}, length, s.By)
	return apiDone{ID: id, OK: true}, err
}

func (h *Handler) apiEndSilence(_ context.Context, _ *query, r *http.Request) (any, error) {
	var s struct {
		By string `json:"by"`
	}
	if err := body(r, &s); err != nil {
		return nil, err
	}
	return apiDone{OK: true}, h.endsSilence(r, s.By)
}
