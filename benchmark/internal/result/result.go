// Package result is what runs leave behind: the JSON that reports are made from.
package result

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// Table1 is the kind of a Run of table1.
const Table1 = "table1"

// A Run is the whole of one run.
type Run struct {
	Kind     string            `json:"kind"`
	Command  string            `json:"command"`
	Started  time.Time         `json:"started"`
	Complete bool              `json:"complete"` // false: interrupted, or still running
	Machine  measure.Machine   `json:"machine"`
	Settings map[string]string `json:"settings"` // what else decides the figures

	Rows      int64  `json:"rows"`
	Requests  int    `json:"requests"` // of a round
	Instances int    `json:"instances"`
	Rounds    int    `json:"rounds"` // that were run
	Balance   string `json:"lb"`     // nginx or none
	Load      string `json:"load"`   // built-in or jmeter

	Methods  []Method  `json:"methods,omitempty"`
	Targets  []Target  `json:"targets,omitempty"`
	Timeline *Timeline `json:"timeline,omitempty"`
	Problems []string  `json:"problems"` // why the exit status is 1
}

// Times are how fast requests were answered.
type Times struct {
	Mean       float64 `json:"mean_ms"`
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	P99        float64 `json:"p99_ms"`
	Throughput float64 `json:"throughput_per_s"` // requests over the time from first request to last answer
}

// NewTimes returns the Times of requests that took some time together.
func NewTimes(h *measure.Histogram, took time.Duration) Times {
	quantile := func(q float64) float64 { return measure.Millis(h.Quantile(q)) }
	t := Times{Mean: measure.Millis(h.Mean()), P50: quantile(0.5), P95: quantile(0.95), P99: quantile(0.99)}
	if took > 0 {
		t.Throughput = measure.Thousandths(float64(h.Count()) / took.Seconds())
	}
	return t
}

// Counts are what came of requests.
type Counts struct {
	Succeeded   int    `json:"succeeded"`
	FirstLayer  int    `json:"first_layer"`  // rejected by the lock
	SecondLayer int    `json:"second_layer"` // refused by the database
	Duplicates  int    `json:"duplicates"`
	Oversold    int    `json:"oversold"`
	Lost        int    `json:"lost"`             // reported as done, and not in the database
	Published   int    `json:"events_published"` // stored in the outbox
	Received    int    `json:"events_received"`  // in the store of guard-monitor
	Killed      bool   `json:"master_killed"`
	FirstError  string `json:"first_error,omitempty"`

	CPU map[string]float64 `json:"cpu_ms"` // processor time of a round by kind of process
}

// A Method is what one method reached. Times, rates and counts are medians of
// the rounds; duplicates, oversold, lost, errors, lock failures and events are
// sums over all of them.
type Method struct {
	Method      string `json:"method"`
	Operation   string `json:"operation"` // insert or update
	Intercepted int    `json:"intercepted"`
	Times
	Counts
	SoldOut      int     `json:"sold_out"`
	LockFailures int     `json:"lock_failures"` // of the second layer, those that were a lock's failure
	Errors       int     `json:"errors"`
	Spread       Spread  `json:"spread"`
	Rounds       []Round `json:"rounds"`
}

// Spread is the least and the greatest of the rounds.
type Spread struct {
	Mean       [2]float64 `json:"mean_ms"`
	Throughput [2]float64 `json:"throughput_per_s"`
}

// A Round is one measurement of one method.
type Round struct {
	Round   int            `json:"round"`
	Results map[string]int `json:"results"`
	Times
	Counts
	Max float64 `json:"max_ms"`
}

// A Timeline is every request of one round.
type Timeline struct {
	Method string  `json:"method"`
	Round  int     `json:"round"`
	Killed float64 `json:"killed_ms"` // when the master was killed; negative = never
	Points []Point `json:"points"`
}

// A Point is one request.
type Point struct {
	Start   float64 `json:"start_ms"`
	Latency float64 `json:"latency_ms"`
	Result  string  `json:"result"`
}

// Read reads a Run from its JSON.
func Read(path string) (*Run, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	var r Run
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is not the JSON of a run: %w", path, err)
	}
	if r.Kind != Table1 {
		return nil, fmt.Errorf("%s is not the JSON of a run: kind is %q", path, r.Kind)
	}
	return &r, nil
}
