package load

import (
	"context"
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

// Answered is how many answers have come. It may be called while Run runs.
func (b *Burst) Answered(context.Context) (int, error) { return int(b.answered.Load()), nil }

// Run opens a connection per request and then sends all requests at once. The
// samples are in the order of the requests.
func (b *Burst) Run(ctx context.Context, requests []Request) ([]Sample, error) {
	users, err := connectAll(ctx, requests)
	defer closeAll(users)
	if err != nil {
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
			answer := users[i].operate(r.Path, from.Add(b.Limit))
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
