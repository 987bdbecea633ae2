package interop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// othersCannotRelease: neither side frees what the other holds.
func othersCannotRelease(t *testing.T, s *stage) string {
	key := teststack.Key(t, "others")
	a := s.thread(t, "a")
	owner := a.do(t, "lock", key)
	if err := s.engine.Release(t.Context(), lockengine.Request{Key: key, Owner: "somebody:1"}); !errors.Is(err, lockengine.ErrNotHeld) {
		t.Errorf("Go's release of Java's lock: %v, want lockengine.ErrNotHeld", err)
	}
	s.wantStored(t, key, owner)
	a.do(t, "unlock", key)

	held := acquire(t, s.locker, key)
	a.begin(t, "unlock", key)
	if answer := a.await(t); !strings.HasPrefix(answer, "failed java.lang.IllegalMonitorStateException") {
		t.Errorf("Java's unlock of Go's lock: %s, want an IllegalMonitorStateException", answer)
	}
	s.wantStored(t, key, held.Grant().Owner)
	release(t, held)
	return "ErrNotHeld in Go, IllegalMonitorStateException in Java"
}

// goIsToldOfForceUnlock: the watchdog finds that the lock is gone, and the next
// in line gets it.
func goIsToldOfForceUnlock(t *testing.T, s *stage) string {
	key := teststack.Key(t, "force")
	held := acquire(t, s.locker, key)
	a := s.thread(t, "a")
	if got := a.do(t, "force", key); got != "true" {
		t.Fatalf("forceUnlock: %s", got)
	}
	start := time.Now()
	select {
	case <-held.Context().Done():
	case <-time.After(limit):
		t.Fatal("the lease does not end")
	}
	told := time.Since(start)
	if err := context.Cause(held.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("the lease ended with %v, want lock.ErrLost", err)
	}
	a.do(t, "lock", key)
	if err := held.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release: %v, want lock.ErrLost", err)
	}
	a.do(t, "unlock", key) // which the release has not taken away
	return fmt.Sprintf("ErrLost after %v of a ttl of %v", told.Round(time.Millisecond), ttl)
}

// javaTakesOverFromGo: a lock that Go no longer renews expires for Java.
func javaTakesOverFromGo(t *testing.T, s *stage) string {
	key := teststack.Key(t, "dead-go")
	held := acquire(t, s.locker, key)
	held.Abandon()
	start := time.Now()
	a := s.thread(t, "a")
	a.do(t, "lock", key)
	took := time.Since(start)
	a.do(t, "unlock", key)
	return fmt.Sprintf("Java has it after %v of a ttl of %v", took.Round(time.Millisecond), ttl)
}

// goTakesOverFromJava: the lock of a JVM that was killed expires for Go.
func goTakesOverFromJava(t *testing.T, s *stage) string {
	key := teststack.Key(t, "dead-java")
	doomed := start(t, s.java.program, s.addrs)
	owner := doomed.thread("a").do(t, "lock", key)
	_, err := s.locker.TryAcquire(t.Context(), key)
	wantHeld(t, err, owner)
	doomed.kill()
	died := time.Now()
	release(t, acquire(t, s.locker, key))
	return fmt.Sprintf("Go has it after %v of a watchdog timeout of %v", time.Since(died).Round(time.Millisecond), ttl)
}
