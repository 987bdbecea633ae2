package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock"
)

// renewTimes is an engine that notes when each hold is renewed, and how much
// later than it was due: a third of the ttl after its grant or last renewal was
// asked for.
type renewTimes struct {
	lock.Engine
	began   time.Time
	due     map[string]*atomic.Int64 // by key, since began
	renewed atomic.Int64
	failed  atomic.Int64
	latest  atomic.Int64 // worst lateness
}

func newRenewTimes(engine lock.Engine, keys []string) *renewTimes {
	r := &renewTimes{Engine: engine, began: time.Now(), due: make(map[string]*atomic.Int64)}
	for _, key := range keys {
		r.due[key] = new(atomic.Int64)
	}
	return r
}

func (r *renewTimes) Acquire(ctx context.Context, h lock.Request, ttl time.Duration) (lock.Grant, error) {
	asked := time.Since(r.began)
	grant, err := r.Engine.Acquire(ctx, h, ttl)
	if err == nil {
		r.due[h.Key].Store(int64(asked + ttl/3))
	}
	return grant, err
}

func (r *renewTimes) Renew(ctx context.Context, hs []lock.Request, ttl time.Duration) []error {
	asked := time.Since(r.began)
	for _, h := range hs {
		r.noteLate(int64(asked) - r.due[h.Key].Load())
	}
	errs := r.Engine.Renew(ctx, hs, ttl)
	for n, h := range hs {
		if errs[n] != nil {
			r.failed.Add(1)
			continue
		}
		r.renewed.Add(1)
		r.due[h.Key].Store(int64(asked + ttl/3))
	}
	return errs
}

func (r *renewTimes) noteLate(late int64) {
	for {
		latest := r.latest.Load()
		if late <= latest || r.latest.CompareAndSwap(latest, late) {
			return
		}
	}
}

// worst returns by how much the latest renewal was late, also counting those
// that are overdue now.
func (r *renewTimes) worst() time.Duration {
	now := int64(time.Since(r.began))
	for _, at := range r.due {
		if due := at.Load(); due > 0 {
			r.noteLate(now - due)
		}
	}
	return time.Duration(r.latest.Load())
}
