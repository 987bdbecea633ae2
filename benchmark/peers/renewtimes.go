package main

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock"
)

// renewTimes is an engine that notes when each hold is renewed, and how much
// later than it was due: a third of the ttl after its grant or last renewal was
// asked for. Keys are leaseKey(0) to leaseKey(n-1).
type renewTimes struct {
	lock.Engine
	began   time.Time
	due     []atomic.Int64 // by number of the key, since began
	renewed atomic.Int64
	failed  atomic.Int64
	latest  atomic.Int64 // worst lateness
}

func newRenewTimes(engine lock.Engine, n int) *renewTimes {
	return &renewTimes{Engine: engine, began: time.Now(), due: make([]atomic.Int64, n)}
}

const leasePrefix = "bench-renew:"

func leaseKey(run string, i int) string { return leasePrefix + run + ":" + strconv.Itoa(i) }

func leaseNumber(key string) (int, bool) {
	if !strings.HasPrefix(key, leasePrefix) {
		return 0, false
	}
	i, err := strconv.Atoi(key[strings.LastIndexByte(key, ':')+1:])
	return i, err == nil && i >= 0
}

func (r *renewTimes) Acquire(ctx context.Context, h lock.Hold, ttl time.Duration) (lock.Grant, error) {
	asked := time.Since(r.began)
	grant, err := r.Engine.Acquire(ctx, h, ttl)
	if i, ok := r.number(h.Key); ok && err == nil {
		r.due[i].Store(int64(asked + ttl/3))
	}
	return grant, err
}

func (r *renewTimes) Renew(ctx context.Context, hs []lock.Hold, ttl time.Duration) []error {
	asked := time.Since(r.began)
	for _, h := range hs {
		if i, ok := r.number(h.Key); ok {
			r.noteLate(int64(asked) - r.due[i].Load())
		}
	}
	errs := r.Engine.Renew(ctx, hs, ttl)
	for n, h := range hs {
		if errs[n] != nil {
			r.failed.Add(1)
			continue
		}
		r.renewed.Add(1)
		if i, ok := r.number(h.Key); ok {
			r.due[i].Store(int64(asked + ttl/3))
		}
	}
	return errs
}

func (r *renewTimes) number(key string) (int, bool) {
	i, ok := leaseNumber(key)
	return i, ok && i < len(r.due)
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
	for i := range r.due {
		if due := r.due[i].Load(); due > 0 {
			r.noteLate(now - due)
		}
	}
	return time.Duration(r.latest.Load())
}
