package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// A Source says what the users of a constant load send. Its methods are called
// by many users at a time.
type Source interface {
	// Next returns what a user sends next: one request after the other, each
	// when the one before has been answered.
	Next(user int) []Request
}

// A Constant load is a number of users who ask without a pause.
type Constant struct {
	Users    int
	Duration time.Duration
	Limit    time.Duration // of one request
	Slice    time.Duration // of the series
	Source   Source
	Started  func(time.Time) // called when all users are connected; nil = nothing
}

// A Tally is what a constant load has measured.
type Tally struct {
	Latency    measure.Histogram
	Results    map[shop.Result]int
	Slices     []Slice
	Took       time.Duration
	FirstError string
}

// A Slice is a part of the time.
type Slice struct {
	Latency measure.Histogram
	Errors  int
}

// Run runs the load. Requests count in the slice in which they are answered.
func (c Constant) Run(ctx context.Context) (*Tally, error) {
	users := make([]*member, c.Users)
	defer func() {
		for _, u := range users {
			if u != nil {
				u.close()
			}
		}
	}()
	for i := range users {
		users[i] = &member{load: c, index: i, results: make(map[shop.Result]int), at: make(map[string]*user)}
		if err := users[i].connect(ctx, c.Source.Next(i)); err != nil {
			return nil, fmt.Errorf("connect user %d of %d: %w", i+1, c.Users, err)
		}
	}
	start := time.Now()
	if c.Started != nil {
		c.Started(start)
	}
	var wg sync.WaitGroup
	for _, u := range users {
		wg.Go(func() { u.ask(ctx, start) })
	}
	wg.Wait()

	t := &Tally{Results: make(map[shop.Result]int), Took: time.Since(start)}
	for _, u := range users {
		t.add(u)
	}
	return t, ctx.Err()
}

func (t *Tally) add(m *member) {
	for i, s := range m.slices {
		for len(t.Slices) <= i {
			t.Slices = append(t.Slices, Slice{})
		}
		for _, d := range s.latencies {
			t.Latency.Add(d)
			t.Slices[i].Latency.Add(d)
		}
		t.Slices[i].Errors += s.errors
	}
	for result, n := range m.results {
		t.Results[result] += n
	}
	if t.FirstError == "" {
		t.FirstError = m.firstError
	}
}

// member is one user, with a connection per address that he asks.
type member struct {
	load       Constant
	index      int
	at         map[string]*user
	slices     []memberSlice
	results    map[shop.Result]int
	firstError string
}

type memberSlice struct {
	latencies []time.Duration
	errors    int
}

func (m *member) connect(ctx context.Context, requests []Request) error {
	for _, r := range requests {
		if m.at[r.Addr] != nil {
			continue
		}
		u, err := connect(ctx, r.Addr)
		if err != nil {
			return err
		}
		m.at[r.Addr] = u
	}
	return nil
}

func (m *member) close() {
	for _, u := range m.at {
		u.close()
	}
}

func (m *member) ask(ctx context.Context, start time.Time) {
	end := start.Add(m.load.Duration)
	for ctx.Err() == nil {
		for _, r := range m.load.Source.Next(m.index) {
			from := time.Now()
			if !from.Before(end) || ctx.Err() != nil {
				return
			}
			answer := m.send(ctx, r, from)
			m.note(answer, time.Since(start), time.Since(from))
		}
	}
}

// send asks, on a new connection if the last one has failed.
func (m *member) send(ctx context.Context, r Request, from time.Time) shop.Answer {
	if m.at[r.Addr] == nil {
		if err := m.connect(ctx, []Request{r}); err != nil {
			return shop.Answer{Result: shop.Failed, Error: err.Error()}
		}
	}
	u := m.at[r.Addr]
	answer, alive := u.operate(r.Path, from.Add(m.load.Limit))
	if !alive {
		u.close()
		delete(m.at, r.Addr)
	}
	return answer
}

func (m *member) note(answer shop.Answer, at, latency time.Duration) {
	slice := int(at / m.load.Slice)
	for len(m.slices) <= slice {
		m.slices = append(m.slices, memberSlice{})
	}
	m.slices[slice].latencies = append(m.slices[slice].latencies, latency)
	m.results[answer.Result]++
	if answer.Result == shop.Failed {
		m.slices[slice].errors++
		if m.firstError == "" {
			m.firstError = answer.Error
		}
	}
}
