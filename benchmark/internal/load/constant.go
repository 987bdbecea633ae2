package load

import (
	"context"
	"sync"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// A Constant load is a number of users that send requests without a pause.
type Constant struct {
	Users    int
	Duration time.Duration
	Limit    time.Duration // of one request
	Slice    time.Duration // of the series
	// Next returns what a user sends next: one request after the other, each when the
	// one before has been answered. All requests of a user go to one address. It is
	// called by many users at a time.
	Next    func(user int) []Request
	Started func() // called when all users are connected; nil = nothing
}

// A Tally is what a constant load has measured.
type Tally struct {
	Latency    measure.Histogram
	Results    map[shop.Result]int
	Slices     []Slice
	Took       time.Duration
	FirstError string

	mu    sync.Mutex
	start time.Time
}

// A Slice is a part of the time.
type Slice struct {
	Latency measure.Histogram
	Errors  int
}

// Run runs the load. Requests count in the slice in which they are answered.
func (c Constant) Run(ctx context.Context) (*Tally, error) {
	first := make([]Request, c.Users)
	for i := range first {
		first[i] = c.Next(i)[0]
	}
	users, err := connectAll(ctx, first)
	defer closeAll(users)
	if err != nil {
		return nil, err
	}
	t := &Tally{Results: make(map[shop.Result]int), start: time.Now()}
	if c.Started != nil {
		c.Started()
	}
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() { c.ask(ctx, i, &users[i], t) })
	}
	wg.Wait()
	t.Took = time.Since(t.start)
	return t, ctx.Err()
}

// ask sends the requests of one user until the time is over.
func (c Constant) ask(ctx context.Context, i int, u *user, t *Tally) {
	for ctx.Err() == nil {
		for _, r := range c.Next(i) {
			from := time.Now()
			if from.Sub(t.start) >= c.Duration || ctx.Err() != nil {
				return
			}
			t.note(u.operate(ctx, r.Path, from.Add(c.Limit)), time.Since(from), c.Slice)
		}
	}
}

func (t *Tally) note(answer shop.Answer, latency, width time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slice := int(time.Since(t.start) / width)
	for len(t.Slices) <= slice {
		t.Slices = append(t.Slices, Slice{})
	}
	t.Latency.Add(latency)
	t.Slices[slice].Latency.Add(latency)
	t.Results[answer.Result]++
	if answer.Result == shop.Failed {
		t.Slices[slice].Errors++
		if t.FirstError == "" {
			t.FirstError = answer.Error
		}
	}
}
