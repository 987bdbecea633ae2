package load

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

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

// Answered is how many answers have come. It may be asked while Run runs.
func (b *Burst) Answered(context.Context) (int, error) { return int(b.answered.Load()), nil }

// Run opens a connection per request and then sends all requests at once. The
// samples are in the order of the requests.
func (b *Burst) Run(ctx context.Context, requests []Request) ([]Sample, error) {
	users, err := connectAll(ctx, requests)
	defer func() {
		for _, u := range users {
			u.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	b.answered.Store(0)
	samples := make([]Sample, len(requests))
	starting := make(chan struct{})
	var wg sync.WaitGroup
	for i, r := range requests {
		wg.Go(func() {
			for _, signal := range []<-chan struct{}{starting, r.After} {
				if signal == nil {
					continue
				}
				select {
				case <-signal:
				case <-ctx.Done():
					samples[i] = Sample{time.Now(), 0, shop.Answer{Result: shop.Failed, Error: ctx.Err().Error()}}
					return
				}
			}
			from := time.Now()
			answer, _ := users[i].operate(r.Path, from.Add(b.Limit))
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

// connectAll opens the connections, and has each answer once.
func connectAll(ctx context.Context, requests []Request) ([]*user, error) {
	const atOnce = 32
	users := make([]*user, 0, len(requests))
	for _, r := range requests {
		u, err := connect(ctx, r.Addr)
		if err != nil {
			return users, fmt.Errorf("connect user %d of %d: %w", len(users)+1, len(requests), err)
		}
		users = append(users, u)
	}
	places := make(chan struct{}, atOnce)
	errs := make([]error, len(users))
	var wg sync.WaitGroup
	for i, u := range users {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			status, _, err := u.ask(http.MethodGet, "/healthz", time.Now().Add(10*time.Second))
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d", status)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return users, fmt.Errorf("first request of a user: %w", err)
		}
	}
	return users, nil
}
