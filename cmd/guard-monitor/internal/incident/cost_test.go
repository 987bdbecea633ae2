package incident_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

// countingStore counts what is asked of it.
type countingStore struct {
	*store.Store
	related, grouped, moves int
}

func (s *countingStore) Writers(ctx context.Context, key string, from, to time.Time) ([]incident.Received, error) {
	s.related++
	return s.Store.Writers(ctx, key, from, to)
}

func (s *countingStore) DegradedEvents(ctx context.Context, service string, from, to time.Time) ([]incident.Received, error) {
	s.related++
	return s.Store.DegradedEvents(ctx, service, from, to)
}

func (s *countingStore) GroupedSince(ctx context.Context, since time.Time, seq int64, limit int) ([]incident.Received, error) {
	s.grouped++
	return s.Store.GroupedSince(ctx, since, seq, limit)
}

func (s *countingStore) Apply(ctx context.Context, saved []incident.Incident, moves []incident.Move) error {
	s.moves = max(s.moves, len(moves))
	return s.Store.Apply(ctx, saved, moves)
}

// What many events have in common is read once for all, and not again with every
// event that tells more.
func TestCostOfManyEvents(t *testing.T) {
	b := newBench(t)
	s := &countingStore{Store: b.store}
	b.tracker = b.track(s)
	const events = 200
	for range events {
		b.send("hot", intruded)
	}
	b.round(0)
	if s.related > 20 {
		t.Errorf("events were read %d times for %d events of one key", s.related, events)
	}
	s.grouped = 0
	for n := range 4 {
		b.send("hot", func(ev *notify.Event) {
			ev.Verdict, ev.Outcome, ev.HolderAtConflict = notify.VerdictDegraded, notify.OutcomeUnknown, ""
			ev.Instance = fmt.Sprint("orders-", n)
		})
		b.saw(failover(-100))
		b.round(time.Second)
	}
	if s.grouped != 0 {
		t.Errorf("events were explained again in each of several seconds")
	}
	b.round(time.Second)
	if s.grouped == 0 {
		t.Error("events were not explained again")
	}
	cause := make(map[incident.Cause]int64)
	for _, i := range b.incidents(2) {
		cause[i.Cause] += i.Events
	}
	if cause[incident.DegradedPeer] != events+4 {
		t.Errorf("explained as %v", cause)
	}
}

// New events have to wait until the moves are stored.
func TestManyMovesInParts(t *testing.T) {
	b := newBench(t)
	s := &countingStore{Store: b.store}
	b.tracker = b.track(s)
	b.saw(failover(-2))
	b.send("first", nil)
	b.round(0)
	b.now = b.now.Add(5 * time.Minute)
	const events = 1010
	for n := range events {
		b.send(fmt.Sprint("k", n), nil)
	}
	b.round(0)
	b.saw(failover(0.5))
	b.round(5 * time.Second)
	list := b.incidents(2)
	if list[0].Cause != incident.Failover || list[0].Events != events+1 || list[1].Events != 0 {
		t.Errorf("incidents %+v", list)
	}
	if s.moves > 1000 {
		t.Errorf("%d moves at once", s.moves)
	}
}
