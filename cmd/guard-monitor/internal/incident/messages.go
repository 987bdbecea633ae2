package incident

import (
	"context"
	"time"

	"github.com/belaygo/belay/notify"
)

// Messages counts the messages of a service that wait in a table, by the last heartbeat of an instance
// that counts them. Numbers are 10,000 at most; ages are those at the heartbeat.
type Messages struct {
	Service    string        `json:"-"`
	Instance   string        `json:"-"`         // that counted; two may mean two databases of one name
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
	return now.Sub(m.ReceivedAt) > max(3*m.Every, LeastPatience)
}

// ByTable returns one Messages for each table, given those of its instances one after the other. As two
// databases may have one name, on two servers, it has the greatest of each number, and the newest time.
func ByTable(all []Messages) (tables []Messages) {
	for _, m := range all {
		last := len(tables) - 1
		if last < 0 || tables[last].Service != m.Service || tables[last].Table != m.Table {
			tables = append(tables, m)
			continue
		}
		t := &tables[last]
		t.Instance = ""
		t.Waiting, t.Oldest, t.Parked = max(t.Waiting, m.Waiting), max(t.Oldest, m.Oldest), max(t.Parked, m.Parked)
		t.Dead, t.Undecided, t.OldestDead = max(t.Dead, m.Dead), max(t.Undecided, m.Undecided), max(t.OldestDead, m.OldestDead)
		if m.ReceivedAt.After(t.ReceivedAt) {
			t.ReceivedAt, t.Every = m.ReceivedAt, m.Every
		}
	}
	return tables
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

// decided reports whether somebody has decided the messages of an incident: every instance that counts
// has counted since a time, one at least, and found none. A table that is not counted any more keeps what
// it had. known is false if nobody has counted.
func decided(i *Incident, all []Messages, since, now time.Time) (done, known bool) {
	waits := false
	for _, m := range all {
		if m.Service != i.Service {
			continue
		}
		known = true
		left := m.Undecided
		if i.Cause == DeadLetter {
			left = m.Dead - m.Undecided
		}
		switch old := m.ReceivedAt.Before(since); {
		case left > 0, old && !m.Stale(now):
			waits = true
		case !old:
			done = true
		}
	}
	return done && !waits, known
}

// messages returns the counts of messages, and reads them once.
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
