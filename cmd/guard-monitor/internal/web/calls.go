package web

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// openCalls counts the requests of a table whose call to another service is not settled.
type openCalls struct {
	incident.Calls
	Stale bool `json:"stale"` // no recent heartbeat counts them
}

// Shown is a number as people read it: 10000+ stands for more.
func (c openCalls) Shown(n int) string { return shown(n) }

// findCalls finds the tables in which requests are pending.
func (h *Handler) findCalls(ctx context.Context, d *overviewData, now time.Time) error {
	all, err := h.calls(ctx, now)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b openCalls) int {
		return cmp.Or(cmp.Compare(b.Undecided, a.Undecided), cmp.Compare(b.Oldest, a.Oldest))
	})
	d.CallsIn, d.Calls = len(all), all[:min(len(all), shownTables)]
	return nil
}

func (h *Handler) calls(ctx context.Context, now time.Time) ([]openCalls, error) {
	list, err := h.cfg.Store.Calls(ctx)
	if err != nil {
		return nil, err
	}
	return convert(incident.CallsByTable(list), func(c incident.Calls) openCalls { return openCalls{c, c.Stale(now)} }), nil
}
