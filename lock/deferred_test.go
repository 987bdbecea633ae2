package lock_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// logbook is a slog.Handler that keeps what it is told, and calls back first.
type logbook struct {
	call func()

	mu      sync.Mutex
	records []slog.Record
}

func (j *logbook) Handle(_ context.Context, r slog.Record) error {
	if j.call != nil {
		j.call()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, r)
	return nil
}

func (j *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (j *logbook) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *logbook) WithGroup(string) slog.Handler            { return j }

// told returns how often msg was logged, and an attribute of the last time.
func (j *logbook) told(msg, attr string) (n int, value string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.records {
		if r.Message != msg {
			continue
		}
		n++
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == attr {
				value = a.Value.String()
			}
			return true
		})
	}
	return n, value
}

// levels returns how often msg was logged, and the highest level.
func (j *logbook) levels(msg string) (n int, most slog.Level) {
	j.mu.Lock()
	defer j.mu.Unlock()
	most = slog.LevelDebug
	for _, r := range j.records {
		if r.Message == msg {
			n++
			most = max(most, r.Level)
		}
	}
	return n, most
}

// A node that is away for a moment is one line in the log, whatever the number
// of locks there.
func TestFailedRenewalsAreLoggedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, log := newFaults(), new(logbook)
		l := newLocker(t, engine, lock.Config{TTL: ttl, Logger: slog.New(log)})
		for i := range 100 {
			acquire(t, l, "k"+strconv.Itoa(i))
		}
		engine.onRenew(renewDown)
		pass(renewed)
		engine.onRenew(nil)
		if n, failed := log.told("renew locks", "failed"); n != 1 || failed != "100" {
			t.Errorf("%d lines, the last about %s failures, want 1 about 100", n, failed)
		}
	})
}

// A lost lock is logged even by a program that gave no Logger.
func TestLossIsLoggedByDefault(t *testing.T) {
	before, log := slog.Default(), new(logbook)
	slog.SetDefault(slog.New(log))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l, err := lock.New(engine, lock.Config{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(endedContext())
		acquire(t, l, "k")
		engine.Forget("k")
		pass(renewed)
		if n, level := log.levels("lock lost"); n != 1 || level != slog.LevelWarn {
			t.Errorf("%d lines at level %v, want 1 warning", n, level)
		}
	})
}

// A handler may take its time, and may use the Locker.
func TestLoggerMayUseLocker(t *testing.T) {
	for name, renew := range map[string]renewFunc{
		"renewals fail": renewDown,
		"a lock is lost": func(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
			return sameVerdict(hs, lockengine.ErrNotHeld)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, log := newFaults(), new(logbook)
				l := newLocker(t, engine, lock.Config{TTL: ttl, Logger: slog.New(log)})
				log.call = func() { // it may be called by Close
					if lease, err := l.TryAcquire(context.Background(), "another key"); err == nil {
						release(t, lease)
					}
				}
				acquire(t, l, "k")
				engine.onRenew(renew)
				pass(renewed)
				log.mu.Lock()
				defer log.mu.Unlock()
				if len(log.records) == 0 {
					t.Error("nothing was logged")
				}
			})
		})
	}
}

// Work that runs under a lock goes on while Close waits for it, with all the
// locks it takes again on the way.
func TestNestedWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		outer := acquire(t, l, "k")
		closed := make(chan error, 1)
		go func() { closed <- l.Close(t.Context()) }()
		synctest.Wait()
		for _, get := range []func() (*lock.Lease, error){
			func() (*lock.Lease, error) { return l.Acquire(outer.Context(), "k") },
			func() (*lock.Lease, error) { return l.TryAcquire(outer.Context(), "k") },
		} {
			nested, err := get()
			if err != nil {
				t.Fatal(err)
			}
			release(t, nested)
		}
		_, err := l.Acquire(outer.Context(), "another key")
		wantIs(t, err, lock.ErrClosed)
		nested, err := l.Acquire(outer.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		release(t, outer)
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("Close did not wait for the nested lease")
		}
		release(t, nested)
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
		_, err = l.Acquire(context.WithoutCancel(outer.Context()), "k")
		wantIs(t, err, lock.ErrClosed)
		engine.wantFree(t, "k")
	})
}

// What ends a lease and who looks at it meet: it never looks alive.
func TestEndIsSeenAtOnce(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			engine := newFaults()
			l := newLocker(t, engine, lock.Config{TTL: ttl})
			lease := acquire(t, l, "k")
			nested, err := l.Acquire(lease.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			engine.onRenew(func(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
				return sameVerdict(hs, lockengine.ErrNotHeld)
			})
			<-time.After(renewed)
			for _, lease := range []*lock.Lease{lease, nested} {
				if err := lease.Release(t.Context()); err != nil {
					wantIs(t, err, lock.ErrLost)
				}
			}
			for _, lease := range []*lock.Lease{lease, nested} {
				if err := lease.Err(); !errors.Is(err, lock.ErrLost) && !errors.Is(err, lockengine.ErrNotHeld) {
					t.Errorf("Err: %v", err)
				}
			}
		})
	}
}
