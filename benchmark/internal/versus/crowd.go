package versus

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// A job is what one process does in a heat.
type job struct {
	Case    string    `json:"case"`
	Callers int       `json:"callers"`
	First   int64     `json:"first"` // number of its first request
	Run     string    `json:"run"`   // prefix of all keys and orders of the run
	Item    int64     `json:"item"`  // of the heat
	From    time.Time `json:"from"`  // what ends from here
	To      time.Time `json:"to"`    // to here counts
}

func (j job) prefix() string          { return fmt.Sprintf("%s-%d-", j.Run, j.Item) }
func (j job) no(n int64) string       { return fmt.Sprintf("%s%09d", j.prefix(), n) }
func (j job) within(t time.Time) bool { return !t.Before(j.From) && t.Before(j.To) }

// An outcome is what became of a job.
type outcome struct {
	InTime int64             `json:"in_time"` // answers that count
	Asked  int64             `json:"asked"`   // warming up included, as is done
	Done   int64             `json:"done"`
	Errors int64             `json:"errors"`
	Error  string            `json:"error"` // one of them
	Waited measure.Histogram `json:"waited"`
}

func (o *outcome) add(other *outcome) {
	o.InTime += other.InTime
	o.Asked += other.Asked
	o.Done += other.Done
	o.Errors += other.Errors
	if o.Error == "" {
		o.Error = other.Error
	}
	o.Waited.Merge(&other.Waited)
}

// crowd has the callers of one process send requests until the time is up.
func (c Case) crowd(ctx context.Context, s *shop.Service, j job) (sum outcome) {
	callers := make([]caller, j.Callers)
	var next atomic.Int64
	next.Store(j.First)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for ctx.Err() == nil && time.Now().Before(j.To) {
				start, n := time.Now(), next.Add(1)-1
				answer := c.do(ctx, s, j, n)
				callers[i].note(j, c, answer, start, time.Now())
			}
		})
	}
	wg.Wait()
	for _, w := range callers {
		w.InTime = int64(len(w.took))
		for _, took := range append(w.took, w.late...) {
			sum.Waited.Add(took)
		}
		sum.add(&w.outcome)
	}
	return sum
}

// A caller sends request after request, and notes the answers.
type caller struct {
	outcome
	took []time.Duration
	late []time.Duration // at least, of requests that were under way when the time was up
}

func (w *caller) note(j job, c Case, answer shop.Answer, start, end time.Time) {
	w.Asked++
	if answer.Result == shop.Done {
		w.Done++
	}
	switch {
	case answer.Result == shop.Stale && c.name == hotCASRetry: // the time was up
		w.late = append(w.late, end.Sub(start))
	case !c.right(answer.Result):
		w.Errors++
		if w.Error == "" {
			w.Error = fmt.Sprintf("%s %s", answer.Result, answer.Error)
		}
	case j.within(end):
		w.took = append(w.took, end.Sub(start))
	case !end.Before(j.To): // without the longest waits, the figures would flatter
		w.late = append(w.late, end.Sub(start))
	}
}
