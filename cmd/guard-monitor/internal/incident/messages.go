package incident

import (
	"context"
	"time"

	"github.com/belaygo/belay/notify"
)

// Messages is what waits in a table of a service's messages, by the last heartbeat that counts them.
// Numbers are 10,000 at most; ages are those at the heartbeat.
type Messages struct {
	Service    string        `json:"-"`
	Table      string        `json:"table"`     // with its database; empty in a heartbeat without messages
	Waiting    int           `json:"waiting"`   // messages
	Oldest     time.Duration `json:"-"`         // age of the oldest whose key has no dead letter
	Parked     int           `json:"parked"`    // keys that wait, since a message was not accepted
	Dead       int           `json:"dead"`      // dead letters
	Undecided  int           `json:"undecided"` // dead letters that may have taken effect
	OldestDead time.Duration `json:"-"`         // since when there are dead letters
	Every      time.Duration `json:"-"`         // how often the instance beats that counted
	ReceivedAt time.Time     `json:"counted_at"`
}

// Stale reports whether the numbers are older than those of a service that goes on.
func (m Messages) Stale(now time.Time) bool {
	return now.Sub(m.ReceivedAt) > max(3*m.Every, leastPatience)
}

// ofLetter returns the cause of an event about a dead letter.
func ofLetter(ev notify.Event) Cause {
	if ev.Message != nil && ev.Message.Undecided {
		return Undecided
	}
	return DeadLetter
}

// countDelay is more than what passes between the count for a heartbeat and its arrival.
const countDelay = 15 * time.Second

// decided reports whether somebody has decided the messages of an incident: every table of the service
// was counted since its last event, and has none. A table that is not counted any more keeps what it had.
// known is false if no table of the service has any, and none is counted.
func decided(i *Incident, all []Messages, now time.Time) (done, known bool) {
	done = true
	for _, m := range all {
		left := m.Undecided
		if i.Cause == DeadLetter {
			left = m.Dead - m.Undecided
		}
		if m.Service != i.Service || m.Stale(now) && left == 0 {
			continue
		}
		known = true
		if left > 0 || m.ReceivedAt.Before(i.SeenAt.Add(countDelay)) {
			done = false
		}
	}
	return done && known, known
}

// messages returns what waits, and reads it once.
func (d *desk) messages(ctx context.Context) ([]Messages, error) {
	if d.counted == nil {
		all, err := d.cfg.Store.Messages(ctx)
		if err != nil {
			return nil, err
		}
		d.counted = append([]Messages{}, all...)
	}
	return d.counted, nil
}
