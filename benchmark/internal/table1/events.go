package table1

import (
	"context"
	"time"

	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/wait"
)

// eventLimit is how long an event may be on its way from the outbox to the
// monitor's store.
const eventLimit = 30 * time.Second

// events counts the events of a round, waits until the monitor has them, and
// compares them with the answers to the users.
func (e *experiment) events(ctx context.Context, m shop.Method, r *result.Round) error {
	failures, err := e.collect(ctx, m, r)
	if err != nil {
		return err
	}
	if told := r.Results[string(shop.Intercepted)]; failures < told {
		e.problem(m, r.Round, "%d requests met a lock failure, the monitor knows of %d", told, failures)
	}
	return nil
}

// lateEvents counts what came after the end of the last round of Belay: that a
// shard answers again, for example.
func (e *experiment) lateEvents(ctx context.Context) error {
	rounds := e.rounds[e.guarded]
	if len(rounds) == 0 {
		return nil
	}
	_, err := e.collect(ctx, e.guarded, &rounds[len(rounds)-1])
	return err
}

// collect adds the events that came into the outbox since the last time. It
// returns how many lock failures they stand for.
func (e *experiment) collect(ctx context.Context, m shop.Method, r *result.Round) (int, error) {
	ids, position, err := e.Stage.Stored(ctx, e.noted)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	e.noted = position
	got, err := e.awaitEvents(ctx, ids)
	if err != nil {
		return 0, err
	}
	r.Published += len(ids)
	r.Received += len(ids) - len(got.Missing)
	if len(got.Missing) > 0 {
		e.problem(m, r.Round, "%d of %d events are not in the monitor's store", len(got.Missing), len(ids))
	}
	return got.Failures, nil
}

func (e *experiment) awaitEvents(ctx context.Context, ids []string) (stage.Received, error) {
	deadline := time.Now().Add(eventLimit)
	for {
		got, err := e.Stage.Received(ctx, ids)
		if err != nil || len(got.Missing) == 0 || time.Now().After(deadline) {
			return got, err
		}
		if err := wait.Sleep(ctx, 50*time.Millisecond, nil); err != nil {
			return got, err
		}
	}
}
