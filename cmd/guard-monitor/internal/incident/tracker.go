package incident

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/belaygo/belay/internal/background"
)

// NewTracker returns a Tracker. Run makes it work.
func NewTracker(cfg Config) *Tracker {
	t := &Tracker{cfg: cfg.withDefaults(), news: newNews()}
	t.news.all = true
	return t
}

// Run works until ctx ends and returns ctx.Err(). It may run once at a time, and
// only one Tracker may work on a store.
func (t *Tracker) Run(ctx context.Context) error {
	if t.cfg.Ready != nil {
		select {
		case <-t.cfg.Ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	tick := time.NewTicker(t.cfg.Every)
	defer tick.Stop()
	for {
		if err := t.Round(ctx, time.Now()); err != nil && ctx.Err() == nil {
			t.cfg.Logger.Error("incidents not kept up", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Round does once what is due at the time: group new events, explain older ones
// again if there is news, note switches, resolve what is quiet, notice silent services.
// Run calls it. A step that panics is an error, and the others go on.
func (t *Tracker) Round(ctx context.Context, now time.Time) error {
	now = now.Round(0) // what it is compared with, from the store, has the wall clock's time only
	t.hear(now)
	step := func(what string, f func(context.Context, time.Time) error) error {
		return background.Do(t.cfg.Logger, what, func() error { return f(ctx, now) })
	}
	return errors.Join(
		step("read clocks", t.readClocks),
		step("group events", t.group),
		step("explain events again", t.revise),
		step("note switches", t.switched),
		step("resolve incidents", t.age),
		step("notice silent services", t.listen),
	)
}

// readClocks reads them. If a clock was set, all that is recent may be explained
// otherwise.
func (t *Tracker) readClocks(ctx context.Context, _ time.Time) error {
	list, err := t.cfg.Store.Clocks(ctx, skew)
	if err != nil {
		return err
	}
	read := make(clocks, len(list))
	for _, c := range list {
		key := instance{c.Service, c.Instance}
		was, known := t.clocks[key]
		switch {
		case known && (!c.Agreed || (c.Behind-was).Abs() < skew): // no news
			read[key] = was
		case c.Agreed && (known && c.Behind.Abs() >= skew || c.Behind.Abs() >= 2*skew):
			read[key] = c.Behind.Round(time.Millisecond)
		}
	}
	if !maps.Equal(read, t.clocks) {
		t.clocks, t.news.all = read, true
	}
	return nil
}
