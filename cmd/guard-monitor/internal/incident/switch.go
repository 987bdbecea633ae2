package incident

import (
	"context"
	"slices"
	"time"
)

// Record is what an instance knows of the record that says which of several engines keeps
// its locks. The zero Record says nothing.
type Record struct {
	Epoch    int64  // grows with each switch
	From, To string // the engine that kept the locks before, and the one that keeps them
	Settled  bool   // no instance needs From any more
	By       string // who made the switch
	Left     time.Duration
}

// Between says between which engines the locks of a switch move, and who made it.
type Between struct {
	Epoch int64  `json:"epoch"`
	From  string `json:"from"`
	To    string `json:"to"`
	By    string `json:"by,omitempty"`
}

// Switch is a switch of a service's locks to another engine, as its instances have reported
// it. Times are this host's.
type Switch struct {
	Service string
	Between
	SeenAt time.Time // when the first instance reported it
	OverAt time.Time // when one reported that it is settled, or another switch; zero: it is not over
}

// near is how much earlier or later than its report a switch may have an effect.
const near = 5 * time.Second

// shortest is less than a switch takes, from its first report to its end.
const shortest = time.Second

// timed reports whether it is known when locks moved. It is not if the switch was over when it
// was first reported, or if its reports waited for guard-monitor and came at once.
func (s Switch) timed() bool { return s.OverAt.IsZero() || s.OverAt.Sub(s.SeenAt) >= shortest }

// meets reports whether locks moved in a time.
func (s Switch) meets(from, to time.Time) bool {
	return s.timed() && !to.Before(s.SeenAt.Add(-near)) && (s.OverAt.IsZero() || !from.After(s.OverAt.Add(near)))
}

// row is the evidence that locks moved.
func (s Switch) row() Evidence {
	return Evidence{At: s.SeenAt.UTC(), Kind: Switched, Service: s.Service, Switch: &s.Between, From: s.SeenAt.UTC(), To: s.OverAt.UTC()}
}

// switched adds to the open incidents of a service that its locks moved meanwhile. A switch
// is no incident, and explains none: it is said beside the cause.
func (t *Tracker) switched(ctx context.Context, now time.Time) error {
	switches, err := t.cfg.Store.Switches(ctx, now.Add(-longOutage))
	if err != nil || len(switches) == 0 {
		return err
	}
	open, err := t.cfg.Store.OpenIncidents(ctx)
	if err != nil {
		return err
	}
	d := t.desk(now)
	for _, i := range open {
		for _, s := range switches {
			if i.mention(s) {
				d.incidents[i.ID], d.changed[i.ID] = &i, true
			}
		}
	}
	return d.save(ctx)
}

// mention adds a switch to the evidence if the incident is about locks that moved meanwhile, or
// brings its row up to date. It reports whether that is news.
func (i *Incident) mention(s Switch) bool {
	if s.Service != i.Service || i.Cause == HeartbeatSilent || i.Cause.ofDatabase() {
		return false
	}
	row := s.row()
	n := slices.IndexFunc(i.Evidence, func(e Evidence) bool { return e.Kind == Switched && *e.Switch == s.Between })
	switch {
	case n < 0 && (len(i.Evidence) >= maxEvidence || !s.meets(i.began(), i.LastAt)), n >= 0 && i.Evidence[n].same(row):
		return false
	case n < 0:
		i.Evidence = append(slices.Clip(i.Evidence), row)
	default:
		i.Evidence = slices.Clone(i.Evidence) // the store shares what it has
		i.Evidence[n] = row
	}
	return true
}

// began is when an incident began, or came back.
func (i *Incident) began() time.Time {
	if i.Regressed > 0 {
		return i.OpenedAt
	}
	return i.FirstAt
}

// mentions splits rows into those that explain, and those that say that locks moved.
func mentions(rows []Evidence) (explain, moved []Evidence) {
	for _, e := range rows {
		if e.Kind == Switched {
			moved = append(moved, e)
		} else {
			explain = append(explain, e)
		}
	}
	return explain, moved
}
