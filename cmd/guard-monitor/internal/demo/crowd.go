package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/guard"
)

// request is what a shopper sends.
type request struct {
	no string    // order number
	to *instance // where the load balancer sends it

	// patient: while the shop is busy, the client tries again. A double click does
	// not, since the first click is on its way. While Redis does not
	// answer, everybody tries again.
	patient bool
}

// newRequests returns n requests, one after the other to each instance. Every
// second one repeats the order number before it: in turn a double click, and a
// client that sends again because it got no answer.
func newRequests(n int, instances []*instance) []request {
	requests := make([]request, n)
	for i := range requests {
		requests[i] = request{
			no:      fmt.Sprintf("2026-%04d", i/2+1),
			to:      instances[i%len(instances)],
			patient: i%4 != 1,
		}
	}
	return requests
}

var errNotSent = errors.New("request was not sent")

// crowd sends requests, all at once.
type crowd struct {
	requests []request

	// When half of the items are sold, halfway sends one pair of requests, a click and
	// its double, while the rest of the crowd is held at the door.
	halfway func(ctx context.Context, click, double request) (clicked, doubled, err error)
	failed  error // of halfway

	door    sync.RWMutex
	sold    atomic.Int64
	refused atomic.Int64 // tries that the lock turned away
}

// rush sends all requests and returns the answer to each.
func (c *crowd) rush(ctx context.Context) []error {
	answers := make([]error, len(c.requests))
	pair := len(answers) / 4 * 2 // the click in the middle of the crowd
	answers[pair], answers[pair+1] = errNotSent, errNotSent
	opening := make(chan struct{})
	var shoppers sync.WaitGroup
	var half sync.Once
	for i, r := range c.requests {
		if i == pair || i == pair+1 {
			continue
		}
		shoppers.Go(func() {
			<-opening
			answers[i] = c.send(ctx, r)
			if c.sold.Load() >= items/2 {
				half.Do(func() { answers[pair], answers[pair+1] = c.sendPair(ctx, c.requests[pair], c.requests[pair+1]) })
			}
		})
	}
	close(opening)
	shoppers.Wait()
	return answers
}

// send sends a request until there is an answer, or just once if it is not
// patient.
func (c *crowd) send(ctx context.Context, r request) error {
	for tries := 1; ; tries++ {
		err := c.try(ctx, r)
		again := errors.Is(err, guard.ErrUnavailable) || r.patient && errors.Is(err, guard.ErrBusy)
		if !again || !pause(ctx, tries) {
			return err
		}
	}
}

func (c *crowd) try(ctx context.Context, r request) error {
	c.door.RLock()
	defer c.door.RUnlock()
	err := r.to.buy(ctx, r.no)
	switch {
	case err == nil:
		c.sold.Add(1)
	case errors.Is(err, guard.ErrBusy):
		c.refused.Add(1)
	}
	return err
}

// pause waits a moment, a different one for everybody, and a longer one after
// each try: else a thousand clients keep a slow machine busy with refusing them.
// It returns false if ctx ends first.
func pause(ctx context.Context, tries int) bool {
	select {
	case <-time.After(20*time.Millisecond + rand.N(80*time.Millisecond*time.Duration(min(tries, 12)))):
		return true
	case <-ctx.Done():
		return false
	}
}

// sendPair closes the door, waits for the requests inside, and has the pair sent.
// Those inside may still have bought; half of the items are left.
func (c *crowd) sendPair(ctx context.Context, click, double request) (clicked, doubled error) {
	c.door.Lock()
	defer c.door.Unlock()
	clicked, doubled, c.failed = c.halfway(ctx, click, double)
	if doubled == nil {
		c.sold.Add(1)
	}
	return clicked, doubled
}
