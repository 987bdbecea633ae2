package load

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// A Request is what one user sends.
type Request struct {
	Addr  string
	Path  string
	After <-chan struct{} // sent when this is closed; nil = with all others
}

// A Sample is how one request went.
type Sample struct {
	At      time.Time // when it was sent
	Latency time.Duration
	shop.Answer
}

// A Burst sends requests all at once.
type Burst struct {
	Limit    time.Duration // of one request
	Ready    func()        // called when all users are connected; nil = nothing
	answered atomic.Int64
}

// Answered is how many answers have come. It may be called while Run runs.
func (b *Burst) Answered(context.Context) (int, error) { return int(b.answered.Load()), nil }

// Run opens a connection per request and then sends all requests at once. The
// samples are in the order of the requests.
func (b *Burst) Run(ctx context.Context, requests []Request) ([]Sample, error) {
	users := make([]user, len(requests))
	defer func() {
		for i := range users {
			users[i].close()
		}
	}()
	if err := connectAll(ctx, users, requests); err != nil {
		return nil, err
	}
	b.answered.Store(0)
	samples := make([]Sample, len(requests))
	starting := make(chan struct{})
	var wg sync.WaitGroup
	for i, r := range requests {
		wg.Go(func() {
			<-starting
			if r.After != nil {
				select {
				case <-r.After:
				case <-ctx.Done():
					samples[i] = Sample{time.Now(), 0, shop.Answer{Result: shop.Failed, Error: ctx.Err().Error()}}
					return
				}
			}
			from := time.Now()
			answer := users[i].operate(ctx, r.Path, from.Add(b.Limit))
			samples[i] = Sample{from, time.Since(from), answer}
			b.answered.Add(1)
		})
	}
	if b.Ready != nil {
		b.Ready()
	}
	close(starting)
	wg.Wait()
	return samples, ctx.Err()
}

// connectAll opens the connections, and waits for a first answer on each.
func connectAll(ctx context.Context, users []user, requests []Request) error {
	var group errgroup.Group
	group.SetLimit(32)
	for i, r := range requests {
		users[i].addr = r.Addr
		group.Go(func() error {
			err := users[i].connect(ctx)
			if err != nil {
				return fmt.Errorf("connect user %d of %d: %w", i+1, len(users), err)
			}
			status, _, err := users[i].ask(http.MethodGet, "/healthz", time.Now().Add(10*time.Second))
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d", status)
			}
			if err != nil {
				return fmt.Errorf("first request of a user: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}
