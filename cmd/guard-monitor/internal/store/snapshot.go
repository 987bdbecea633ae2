package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

const (
	// Recent is how long an incident stays in a Snapshot after its end.
	Recent = 24 * time.Hour
	// arrangeEvery is how often a Snapshot is made although nothing has changed, to leave
	// out what is no longer recent.
	arrangeEvery = time.Minute
)

// A Snapshot has the incidents of a moment: all that are open, and those that ended within
// Recent, the newest first. It is shared by its readers and must not be changed.
type Snapshot struct {
	// Version differs between two snapshots whose incidents may differ.
	Version   int64
	Incidents []*incident.Incident
}

// current is what the last Snapshot was made from.
type current struct {
	turn     chan struct{} // has room for who reads: its wait ends with its context
	read     revisions
	byID     map[string]*incident.Incident
	silences []incident.Silence // that have not ended
	holding  []incident.Silence // of these, at the time of the snapshot
	arranged time.Time
	snapshot Snapshot
}

// revisions counts changes. It begins at 0 in a new database.
type revisions struct{ incidents, silences int64 }

func newCurrent() *current {
	return &current{turn: make(chan struct{}, 1), read: revisions{-1, -1}, byID: make(map[string]*incident.Incident)}
}

// Current returns the incidents as they are now. It reads those alone that have changed
// since the last call.
func (s *Store) Current(ctx context.Context) (Snapshot, error) {
	c := s.current
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return Snapshot{}, ctx.Err()
	}
	var now revisions
	err := s.read.QueryRowContext(ctx, `SELECT incidents, silences FROM revisions`).Scan(&now.incidents, &now.silences)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read revisions: %w", err)
	}
	at := time.Now()
	if now.silences != c.read.silences {
		if c.silences, err = s.silences(ctx, ` WHERE ends_at > ? ORDER BY id DESC`, micros(at)); err != nil {
			return Snapshot{}, err
		}
	}
	var changed []incident.Incident
	if now.incidents != c.read.incidents {
		if changed, err = s.readIncidents(ctx, clauseOfChanged, c.read.incidents, micros(at.Add(-Recent))); err != nil {
			return Snapshot{}, err
		}
	}
	silenced := c.silence(at)
	if len(changed) > 0 || silenced || at.Sub(c.arranged) >= arrangeEvery {
		c.update(changed, silenced)
		c.arrange(at)
	}
	c.read = now
	return c.snapshot, nil
}

// clauseOfChanged leaves out what ended long ago when all incidents are read. One that changes
// later may be in the last snapshot.
const clauseOfChanged = ` WHERE revision > ?1 AND (?1 >= 0 OR state <> 'resolved' OR resolved_at >= ?2)`

// silence finds the silences that hold at the time. It reports whether they are others.
func (c *current) silence(at time.Time) bool {
	var holding []incident.Silence
	for _, s := range c.silences {
		if s.Active(at) {
			holding = append(holding, s)
		}
	}
	same := slices.EqualFunc(holding, c.holding, func(a, b incident.Silence) bool { return a.ID == b.ID })
	c.holding = holding
	return !same
}

// update takes over the incidents that have changed, and says which silences hold for
// them; for all incidents if the silences are others.
func (c *current) update(changed []incident.Incident, silenced bool) {
	if silenced {
		for id, i := range c.byID {
			other := *i // the old one is in the last snapshot
			other.Silences = matching(c.holding, &other)
			c.byID[id] = &other
		}
	}
	for n := range changed {
		i := &changed[n]
		i.Silences = matching(c.holding, i)
		c.byID[i.ID] = i
	}
}

// arrange makes the next snapshot.
func (c *current) arrange(at time.Time) {
	list := make([]*incident.Incident, 0, len(c.byID))
	for id, i := range c.byID {
		if !i.State.Open() && at.Sub(i.ResolvedAt) > Recent {
			delete(c.byID, id)
			continue
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *incident.Incident) int { return strings.Compare(b.ID, a.ID) })
	c.arranged, c.snapshot = at, Snapshot{c.snapshot.Version + 1, list}
}

// OpenIncidents returns the incidents that are not resolved, the newest first. Their
// evidence is shared and must not be changed.
func (s *Store) OpenIncidents(ctx context.Context) (open []incident.Incident, err error) {
	now, err := s.Current(ctx)
	open = make([]incident.Incident, 0, len(now.Incidents))
	for _, i := range now.Incidents {
		if i.State.Open() {
			open = append(open, *i)
		}
	}
	return open, err
}
