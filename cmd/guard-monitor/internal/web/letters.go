package web

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
	"github.com/belaygo/belay/notify"
)

const (
	shownLetters = 100
	// Each look takes the letters out of the queue for a moment.
	keepLetters = 5 * time.Second
)

type letterList struct {
	letters []deadletter.Letter
	total   int
}

type lettersData struct {
	Off    bool // they cannot be read here
	Failed bool // the broker does not show them
	List   []letterView
	Total  int
	SeenAt time.Time
}

type letterView struct {
	deadletter.Letter
	Payload string
	Problem string
	Cut     int // bytes that are not shown
}

func (h *Handler) deadLetters(ctx context.Context, _ *query, _ *http.Request) (any, error) {
	return h.findLetters(ctx), nil
}

func (h *Handler) findLetters(ctx context.Context) (d lettersData) {
	if h.cfg.Letters == nil {
		d.Off = true
		return d
	}
	list, at, err := h.letters.get(ctx, keepLetters, func(ctx context.Context) (l letterList, err error) {
		l.letters, l.total, err = h.cfg.Letters.List(ctx, shownLetters)
		return l, err
	})
	if err != nil {
		h.cfg.Logger.LogAttrs(ctx, slog.LevelError, "dead letters not read", slog.Any("error", err))
		d.Failed = true
		return d
	}
	d.Total, d.SeenAt = list.total, at
	for _, l := range list.letters {
		v := letterView{Letter: l, Payload: payload(l.Body), Cut: l.Size - len(l.Body)}
		if l.Err != nil {
			v.Problem = strings.TrimPrefix(line(l.Err), notify.ErrInvalidEvent.Error()+": ")
		}
		d.List = append(d.List, v)
	}
	return d
}
