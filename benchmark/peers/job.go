package main

import (
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// ttl is the lease that every contender asks for.
const ttl = 30 * time.Second

// A job is what a worker process is asked to do.
type job struct {
	Workload string `json:"workload"` // own-key, one-key or try-one-key
	Key      string `json:"key"`      // the key, or what keys begin with
	Callers  int    `json:"callers"`  // goroutines, or threads
	First    int    `json:"first"`    // the number of the first caller; each has its own over all processes
	Arena    string `json:"arena"`    // file of the arena; empty = none
	FromUS   int64  `json:"from_us"`  // what ends in this span of time counts,
	ToUS     int64  `json:"to_us"`    // in microseconds since 1970
}

func (j job) from() time.Time { return time.UnixMicro(j.FromUS) }
func (j job) to() time.Time   { return time.UnixMicro(j.ToUS) }

func (j job) counts(end time.Time) bool { return !end.Before(j.from()) && end.Before(j.to()) }

// An outcome is what a worker answers.
type outcome struct {
	Cycles    int64             `json:"cycles"`     // acquire and release; for try-one-key: bursts
	HandOvers int64             `json:"hand_overs"` // grants to another caller than the last
	Passed    int64             `json:"passed"`     // through the arena, also before the span
	Broken    int64             `json:"broken"`     // grants that were one too many
	Errors    int64             `json:"errors"`
	Error     string            `json:"error"`   // one of them
	Latency   measure.Histogram `json:"latency"` // of one acquire

	took []time.Duration // by each acquire, until add counts it
}

// add counts what another process, or another caller, has done.
func (o *outcome) add(other outcome) {
	o.Cycles += other.Cycles
	o.HandOvers += other.HandOvers
	o.Passed += other.Passed
	o.Broken += other.Broken
	o.Errors += other.Errors
	if o.Error == "" {
		o.Error = other.Error
	}
	o.Latency.Merge(&other.Latency)
	for _, d := range other.took {
		o.Latency.Add(d)
	}
}

func (o *outcome) fail(err error) {
	o.Errors++
	if o.Error == "" {
		o.Error = err.Error()
	}
}
