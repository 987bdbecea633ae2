package incident

import (
	"time"

	"github.com/belaygo/belay/notify"
)

// clocks are those of instances that are wrong by more than skew, as measured by
// heartbeats: how much each is behind this host's.
type clocks map[instance]time.Duration

type instance struct{ service, name string }

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
