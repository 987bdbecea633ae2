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

// mostAhead is the most that a clock may be ahead for its time to be believed.
const mostAhead = 24 * time.Hour

// noneBefore is older than Belay: no event was caught before. An event may wait for its
// broker for however long.
var noneBefore = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// CaughtAt is when an event was caught that arrived at a time by this host's clock: as the
// event says, or, if no clock that is nearly right says so, when it arrived.
func CaughtAt(ev notify.Event, arrived time.Time) time.Time {
	if at := ev.CaughtAt; at.Before(noneBefore) || at.After(arrived.Add(mostAhead)) {
		return arrived
	}
	return ev.CaughtAt
}

// believed returns an event that arrived at a time without times that no clock can have
// shown, and what it says instead, zero if its times are believed.
func believed(ev notify.Event, arrived time.Time) (notify.Event, time.Time) {
	says := ev.CaughtAt
	if ev.CaughtAt = CaughtAt(ev, arrived); ev.CaughtAt.Equal(says) {
		return ev, time.Time{}
	}
	ev.AcquiredAt, ev.Deadline = time.Time{}, time.Time{}
	return ev, says
}

// disbelieved is the row that says that an event's times are not what it says.
func disbelieved(ev notify.Event, says time.Time) Evidence {
	return Evidence{At: ev.CaughtAt, Node: ev.Instance, Kind: ClockWrong, From: says}
}
