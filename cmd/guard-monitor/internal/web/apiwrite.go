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

type apiBy struct {
	By string `json:"by"`
}

type apiDone struct {
	ID int64 `json:"id,omitempty"`
	OK bool  `json:"ok"`
}

func (h *Handler) apiAck(ctx context.Context, r *http.Request) (any, error) {
	var by apiBy
	if err := body(r, &by); err != nil {
		return nil, err
	}
	_, err := h.ack(ctx, r, by.By)
	return apiDone{OK: true}, err
}

func (h *Handler) apiUnack(ctx context.Context, r *http.Request) (any, error) {
	var by apiBy
	if err := body(r, &by); err != nil {
		return nil, err
	}
	_, err := h.unack(ctx, r, by.By)
	return apiDone{OK: true}, err
}

type apiNewSilence struct {
	Matchers []incident.Matcher `json:"matchers"`
	Duration string             `json:"duration"`
	Comment  string             `json:"comment"`
	By       string             `json:"by"`
}

func (h *Handler) apiSilence(ctx context.Context, r *http.Request) (any, error) {
	var s apiNewSilence
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

func (h *Handler) apiEndSilence(ctx context.Context, r *http.Request) (any, error) {
	var by apiBy
	if err := body(r, &by); err != nil {
		return nil, err
	}
	_, err := h.endsSilence(ctx, r, by.By)
	return apiDone{OK: true}, err
}

func (h *Handler) apiForget(ctx context.Context, r *http.Request) (any, error) {
	var by apiBy
	if err := body(r, &by); err != nil {
		return nil, err
	}
	return apiDone{OK: true}, h.forgets(ctx, r, r.PathValue("service"), by.By)
}
