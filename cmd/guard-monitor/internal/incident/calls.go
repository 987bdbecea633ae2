package incident

import (
	"context"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/notify"
)

// Calls counts the requests of guard.Call of a service that are not settled in a table, by the last
// heartbeat of an instance that counts them. Numbers are 10,000 at most; ages are those at the heartbeat.
type Calls struct {
	Service         string        `json:"-"`
	Instance        string        `json:"-"`         // that counted; two may mean two databases of one name
	Table           string        `json:"table"`     // with its database; empty in a heartbeat without calls
	Pending         int           `json:"pending"`   // requests, with those that are undecided
	Oldest          time.Duration `json:"-"`         // age of the oldest that is not undecided
	Undecided       int           `json:"undecided"` // requests that a person has to decide
	OldestUndecided time.Duration `json:"-"`         // since when the first of them is undecided
	Every           time.Duration `json:"-"`         // how often the instance beats that counted
	ReceivedAt      time.Time     `json:"counted_at"`
}

// Stale reports whether the numbers are older than those of a service that goes on.
func (c Calls) Stale(now time.Time) bool { return c.undecided().Stale(now) }

// undecided returns the part of the numbers that decided reads.
func (c Calls) undecided() Messages {
	return Messages{Service: c.Service, Undecided: c.Undecided, Every: c.Every, ReceivedAt: c.ReceivedAt}
}

// CallsByTable returns one Calls for each table, as ByTable does for messages.
func CallsByTable(all []Calls) (tables []Calls) {
	for _, c := range all {
		last := len(tables) - 1
		if last < 0 || tables[last].Service != c.Service || tables[last].Table != c.Table {
			tables = append(tables, c)
			continue
		}
		t := &tables[last]
		t.Instance = ""
		t.Pending, t.Oldest = max(t.Pending, c.Pending), max(t.Oldest, c.Oldest)
		t.Undecided, t.OldestUndecided = max(t.Undecided, c.Undecided), max(t.OldestUndecided, c.OldestUndecided)
		if c.ReceivedAt.After(t.ReceivedAt) {
			t.ReceivedAt, t.Every = c.ReceivedAt, c.Every
		}
	}
	return tables
}

// waiting returns the counts of what a cause is about, and reads them once.
func (d *desk) waiting(ctx context.Context, c Cause) ([]Messages, error) {
	if c != CallUndecided {
		return d.messages(ctx)
	}
	if d.calls == nil {
		all, err := d.cfg.Store.Calls(ctx)
		if err != nil {
			return nil, err
		}
		d.calls = make([]Messages, 0, len(all))
		for _, c := range all {
			d.calls = append(d.calls, c.undecided())
		}
	}
	return d.calls, nil
}

// call is what the event says of an undecided request, nil if it says nothing.
func (f Facts) call() *notify.UndecidedCall {
	if f.Event.Call == nil {
		return nil
	}
	c := *f.Event.Call
	c.Since, c.Until = f.writable(c.Since), f.writable(c.Until)
	c.ID, c.Operation = text.Clip(c.ID, maxID), text.Clip(c.Operation, maxName)
	return &c
}
