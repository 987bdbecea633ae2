package table1

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

const (
	warmUsers   = 120
	settleLimit = time.Minute
	// clientLag is how long clients may go on with the old map of a cluster that
	// is whole again: they reload it each second.
	clientLag = 1500 * time.Millisecond
)

// warmUp has every connection opened before anything is measured: by a crowd as
// large as those to come.
func (e *experiment) warmUp(ctx context.Context) error {
	fmt.Fprintln(e.Out, "warming up")
	p, err := e.newPlan(ctx, shop.UniqueIndex, e.cfg.Users, nil)
	if err != nil {
		return err
	}
	_, err = (&load.Burst{Limit: requestLimit}).Run(ctx, p.requests)
	return err
}

// settle sends a small crowd, which is not measured, until it meets no error.
func (e *experiment) settle(ctx context.Context, m shop.Method) error {
	if m.Guarded() || m == shop.RedisLock {
		if err := stage.Pause(ctx, clientLag); err != nil {
			return err
		}
	}
	b := &load.Burst{Limit: requestLimit}
	deadline := time.Now().Add(settleLimit)
	for {
		p, err := e.newPlan(ctx, m, warmUsers, nil)
		if err != nil {
			return err
		}
		samples, err := b.Run(ctx, p.requests)
		if err != nil {
			return err
		}
		r := summarize(0, samples)
		failed := r.Results[string(shop.Failed)]
		if failed == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d requests fail before anything has happened: %s", failed, len(samples), r.FirstError)
		}
		if err := stage.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
