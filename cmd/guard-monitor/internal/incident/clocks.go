package incident

import (
	"context"
	"maps"
	"time"

	"github.com/belaygo/belay/notify"
)

// clocks are those of instances that go wrong by more than skew, as their
// heartbeats tell: how much each is behind this host's.
type clocks map[instance]time.Duration

type instance struct{ service, name string }

// readClocks reads them. If a clock was set, all that is recent may be explained
// otherwise.
func (t *Tracker) readClocks(ctx context.Context) error {
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

// behind is how much the clock is behind by which an event's times are.
func (c clocks) behind(ev notify.Event) time.Duration {
	return c[instance{ev.Service, ev.Instance}]
}

// correct returns an event with its times as they are by this host's clock.
func (c clocks) correct(ev notify.Event) notify.Event {
	by := c.behind(ev)
	if by == 0 {
		return ev
	}
	for _, at := range []*time.Time{&ev.AcquiredAt, &ev.Deadline, &ev.CaughtAt} {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
	return ev
}

// widest is the most by which one of the clocks goes wrong.
func (c clocks) widest() (most time.Duration) {
	for _, by := range c {
		most = max(most, by.Abs())
	}
	return min(most, lookBack)
}

// corrected is the row that says that an event's times are not what it says.
func corrected(ev notify.Event, by time.Duration) Evidence {
	return Evidence{At: ev.CaughtAt, Node: ev.Instance, Kind: ClockOff, For: by}
}
