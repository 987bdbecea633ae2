package interop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// counterIsExact has Java threads and goroutines read, add one and write, with
// nothing between them but the lock. They start at the same time in each of
// some rounds, so that neither has the lock to itself for long.
func counterIsExact(t *testing.T, s *stage) string {
	const rounds, threads, goroutines, times = 10, 4, 6, 10
	key, counter := teststack.Key(t, "count"), teststack.Key(t, "counter")
	if err := s.cluster.Set(t.Context(), counter, 0, 0).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cluster.Del(context.Background(), counter) })
	lockers := []*lock.Locker{newLocker(t, s.engine, ttl), newLocker(t, newEngine(t, s.addrs), ttl)}
	before := time.Now()

	var mu sync.Mutex
	var written []int // by Go
	for range rounds {
		for i := range threads {
			s.thread(t, strconv.Itoa(i)).begin(t, "count", key, counter, strconv.Itoa(times))
		}
		var crew sync.WaitGroup
		for i := range goroutines {
			crew.Go(func() {
				numbers, err := count(t.Context(), lockers[i%len(lockers)], s.cluster, key, counter, times)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				written = append(written, numbers...)
			})
		}
		crew.Wait()
		for i := range threads {
			s.thread(t, strconv.Itoa(i)).result(t)
		}
	}

	got, err := s.cluster.Get(t.Context(), counter).Int()
	if want := rounds * (threads + goroutines) * times; err != nil || got != want {
		t.Errorf("counter is %d, %v, want %d", got, err, want)
	}
	turns := turns(written)
	if turns < 2 {
		t.Error("all that Go counted comes in one run: the two did not compete")
	}
	return fmt.Sprintf("%d by %d Java threads and %d goroutines in %v, Go's turn %d times",
		got, threads, goroutines, time.Since(before).Round(time.Millisecond), turns)
}

// count increments the counter under the lock and returns what it wrote.
func count(ctx context.Context, l *lock.Locker, c *redis.ClusterClient, key, counter string, times int) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var written []int
	for range times {
		held, err := l.Acquire(ctx, key)
		if err != nil {
			return written, err
		}
		n, err := c.Get(ctx, counter).Int()
		if err == nil {
			err = c.Set(ctx, counter, n+1, 0).Err()
			written = append(written, n+1)
		}
		if err := errors.Join(err, held.Release(ctx)); err != nil {
			return written, err
		}
	}
	return written, nil
}

// turns counts the runs of numbers that follow each other.
func turns(numbers []int) int {
	slices.Sort(numbers)
	n := 0
	for i, number := range numbers {
		if i == 0 || number != numbers[i-1]+1 {
			n++
		}
	}
	return n
}

// javaKeepsGoOut: Redisson's watchdog renews what Java holds.
func javaKeepsGoOut(t *testing.T, s *stage) string {
	key := teststack.Key(t, "java-holds")
	a := s.thread(t, "a")
	owner := a.do(t, "lock", key)

	asked := 0
	for start := time.Now(); time.Since(start) < 2*ttl; asked++ {
		ctx, cancel := context.WithTimeout(t.Context(), ttl/4) // long enough for an answer
		_, err := s.locker.Acquire(ctx, key)
		cancel()
		wantHeld(t, err, owner)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the end of the wait", err)
		}
		_, err = s.locker.TryAcquire(t.Context(), key)
		wantHeld(t, err, owner)
	}
	a.do(t, "unlock", key)
	release(t, acquire(t, s.locker, key))
	return fmt.Sprintf("Go was kept out for %v, %d times refused", 2*ttl, 2*asked)
}

// goKeepsJavaOut: Belay's watchdog renews what Go holds.
func goKeepsJavaOut(t *testing.T, s *stage) string {
	key := teststack.Key(t, "go-holds")
	held := acquire(t, s.locker, key)
	patient, hasty := s.thread(t, "a"), s.thread(t, "b")
	patient.begin(t, "tryfor", key, strconv.FormatInt((2*ttl).Milliseconds(), 10))
	asked := 0
	answer := ""
	for ; answer == ""; asked++ {
		if got := hasty.do(t, "try", key); got != "false" {
			t.Fatalf("tryLock of what Go holds: %s", got)
		}
		select {
		case answer = <-patient.answers:
		case <-time.After(20 * time.Millisecond):
		}
	}
	if answer != "ok false" {
		t.Errorf("tryLock that waits %v: %s, want false", 2*ttl, answer)
	}
	if err := held.Err(); err != nil {
		t.Errorf("Go's lease: %v", err)
	}
	release(t, held)
	if got := hasty.do(t, "try", key); got != "true" {
		t.Errorf("tryLock after Go's release: %s", got)
	}
	hasty.do(t, "unlock", key)
	return fmt.Sprintf("Java was kept out for %v, %d times refused", 2*ttl, asked)
}

// javaHoldsTwice: the lock is free after the last of Java's unlocks.
func javaHoldsTwice(t *testing.T, s *stage) string {
	key := teststack.Key(t, "twice")
	a := s.thread(t, "a")
	owner := a.do(t, "lock", key)
	a.do(t, "lock", key)
	if _, fields, _ := s.stored(t, key); fields[owner] != "2" {
		t.Errorf("stored is %v, want %s twice", fields, owner)
	}
	for range 2 {
		_, err := s.locker.TryAcquire(t.Context(), key)
		wantHeld(t, err, owner)
		a.do(t, "unlock", key)
	}
	held, err := s.locker.TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatalf("after the second unlock: %v", err)
	}
	release(t, held)
	return "free after the second unlock, not after the first"
}

// busyGoLetsJavaIn has a Java thread count beside processes that always want the lock.
func busyGoLetsJavaIn(t *testing.T, s *stage) string {
	const processes, goroutines, times = 4, 4, 50
	key, counter := teststack.Key(t, "busy"), teststack.Key(t, "busycounter")
	if err := s.cluster.Set(t.Context(), counter, 0, 0).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cluster.Del(context.Background(), counter) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var busy sync.WaitGroup
	var held atomic.Int64
	for range processes {
		l := newLocker(t, newEngine(t, s.addrs), ttl)
		for range goroutines {
			busy.Go(func() {
				for ctx.Err() == nil {
					if lease, err := l.Acquire(ctx, key); err == nil {
						held.Add(1)
						<-time.After(time.Millisecond)
						_ = lease.Release(context.Background())
					}
				}
			})
		}
	}
	testwait.Until(t, "they are busy", func() bool { return held.Load() > 100 })
	before, atFirst := time.Now(), held.Load()
	java := s.thread(t, "busy")
	java.begin(t, "count", key, counter, strconv.Itoa(times))
	java.result(t)
	took, byGo := time.Since(before), held.Load()-atFirst
	cancel()
	busy.Wait()
	return fmt.Sprintf("%d by a Java thread beside %d by %d busy lockers in %v", times, byGo, processes, took.Round(time.Millisecond))
}
