package main

import (
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

func TestNewResultSumsProcesses(t *testing.T) {
	w := workload{oneKeyProcesses, 8, 2}
	at := func(d time.Duration) (h measure.Histogram) {
		h.Add(d)
		return h
	}
	r := newResult(contender{name: "x"}, w, []outcome{
		{Cycles: 100, HandOvers: 10, Errors: 1, Error: "first", Latency: at(time.Millisecond)},
		{Cycles: 300, HandOvers: 30, Errors: 2, Error: "second", Latency: at(time.Second)},
	}, 2*time.Second)

	if r.CyclesPerSecond != 200 || r.HandOversPerSec != 20 {
		t.Errorf("%v cycles/s, %v hand-overs/s; want 200 and 20", r.CyclesPerSecond, r.HandOversPerSec)
	}
	if r.MinShare != 0.25 || r.MaxShare != 0.75 {
		t.Errorf("shares %v-%v, want 0.25-0.75", r.MinShare, r.MaxShare)
	}
	if r.Errors != 3 || r.failure != "first" {
		t.Errorf("%d errors, %q; want 3, %q", r.Errors, r.failure, "first")
	}
	if r.P50 > 1_100 || r.P99 < 900_000 {
		t.Errorf("p50 %v µs, p99 %v µs; want 1 ms and 1 s", r.P50, r.P99)
	}
}

func TestSharesOfNothing(t *testing.T) {
	if least, greatest := shares([]outcome{{}, {}}, 0); least != 0 || greatest != 0 {
		t.Errorf("shares %v-%v of no cycles, want 0-0", least, greatest)
	}
}

func TestCombineRounds(t *testing.T) {
	r := combine([]result{
		{CyclesPerSecond: 10, P99: 3, MinShare: 0.2, MaxShare: 0.3},
		{CyclesPerSecond: 30, P99: 1, MinShare: 0.1, MaxShare: 0.2, Errors: 1, failure: "oops"},
		{CyclesPerSecond: 20, P99: 2, MinShare: 0.3, MaxShare: 0.5, ExclusionBroken: 1},
	})
	if r.CyclesPerSecond != 20 || r.P99 != 2 {
		t.Errorf("%v cycles/s, p99 %v; want the medians 20 and 2", r.CyclesPerSecond, r.P99)
	}
	if r.MinShare != 0.1 || r.MaxShare != 0.5 {
		t.Errorf("shares %v-%v, want the worst, 0.1-0.5", r.MinShare, r.MaxShare)
	}
	if r.Errors != 1 || r.ExclusionBroken != 1 || r.failure != "oops" {
		t.Errorf("%d errors (%q), exclusion broken %d; want 1 of each", r.Errors, r.failure, r.ExclusionBroken)
	}
}

func TestBestPeerIsNotOurs(t *testing.T) {
	rs := []result{
		{Contender: "belay", CyclesPerSecond: 900, HandOversPerSec: 900, ours: true},
		{Contender: "a", CyclesPerSecond: 100, HandOversPerSec: 5},
		{Contender: "b", CyclesPerSecond: 50, HandOversPerSec: 50},
	}
	if best := bestPeer(rs); best != (peer{100, 50}) {
		t.Errorf("best peer %v, want 100 cycles/s and 50 hand-overs/s", best)
	}
}
