package table1

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/internal/wait"
)

const (
	warmUsers   = 120
	settleLimit = time.Minute
	// clientLag is how long clients may go on with the old map of a cluster that
	// is whole again: they reload it each second.
	clientLag = 1500 * time.Millisecond
)

// settle sends a small crowd until it meets no error.
func (e *experiment) settle(ctx context.Context, m shop.Method) error {
	if m.Guarded() || m == shop.RedisLock {
		if err := wait.Sleep(ctx, clientLag, nil); err != nil {
			return err
		}
	}
	var r result.Round
	err := stage.Poll(ctx, 200*time.Millisecond, settleLimit, "requests succeed before anything has happened", func() (bool, error) {
		var err error
		r, err = e.crowd(ctx, m, warmUsers)
		return r.Results[string(shop.Failed)] == 0, err
	})
	if err != nil && r.FirstError != "" {
		err = fmt.Errorf("%w: %s", err, r.FirstError)
	}
	return err
}

// crowd sends the requests of some users, which are not measured.
func (e *experiment) crowd(ctx context.Context, m shop.Method, users int) (result.Round, error) {
	p, err := e.newPlan(ctx, m, users, nil)
	if err != nil {
		return result.Round{}, err
	}
	samples, err := (&load.Burst{Limit: requestLimit}).Run(ctx, p.requests)
	return summarize(0, samples), err
}
