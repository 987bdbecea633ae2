package doctor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/doctor"
)

// TestRun: what several servers have in common is one finding, and errors come first.
func TestRun(t *testing.T) {
	at := func(f ...doctor.Finding) func(context.Context) []doctor.Finding {
		return func(context.Context) []doctor.Finding { return f }
	}
	found := doctor.Run(t.Context(),
		at(doctor.RedisClock.Unmade("c:1", errors.New("NOPERM"), "grant +time"), doctor.LockTTL.Found("the locker", "TTL is 1s")),
		at(doctor.RedisEviction.Found("a:1", "policy is x"), doctor.RedisEviction.Found("b:1", "policy is x"), doctor.RedisEviction.Found("b:1", "policy is y")),
		at())
	var lines []string
	for _, f := range found {
		lines = append(lines, f.String())
	}
	want := []string{
		"error redis-eviction: a:1, b:1: policy is x. Fix: first raise maxmemory or move caches to another Redis, then set maxmemory-policy to noeviction: with it, a Redis that is full grants no lock",
		"error redis-eviction: b:1: policy is y. Fix: first raise maxmemory or move caches to another Redis, then set maxmemory-policy to noeviction: with it, a Redis that is full grants no lock",
		"warning lock-ttl: the locker: TTL is 1s. Fix: set lock.Config.TTL to several times the longest pause of a process, or leave it at its default of 30 s",
		"unchecked redis-clock: c:1: not checked: NOPERM. Fix: grant +time",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("found\n%q, want\n%q", lines, want)
	}
	if none := doctor.Run(t.Context(), at()); none != nil {
		t.Errorf("nothing is found, and it is %v", none)
	}
}

// TestCheckClock: the time that the answer took is no skew.
func TestCheckClock(t *testing.T) {
	now := time.Now()
	for server, want := range map[time.Time]int{
		now: 0, now.Add(-9 * time.Second): 0, now.Add(-12 * time.Second): 1, now.Add(3 * time.Second): 1,
	} {
		if found := doctor.CheckClock(doctor.RedisClock, "a:1", server, now.Add(-10*time.Second)); len(found) != want {
			t.Errorf("%v from now: %v", server.Sub(now), found)
		}
	}
}
