package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// addTogether adds events while nobody can write, so that they share a transaction, and
// returns the errors by ID, and how many are new.
func addTogether(t *testing.T, s *store.Store, path string, ids ...string) (failed map[string]error, added int64) {
	t.Helper()
	conn, err := raw(t, path).Conn(t.Context())
	noError(t, err)
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	noError(t, err)
	failed = make(map[string]error)
	var mu sync.Mutex
	var fresh atomic.Int64
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			ok, err := s.Add(context.Background(), event(id), nil, "")
			if ok {
				fresh.Add(1)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[id] = err
			}
		})
	}
	<-time.After(200 * time.Millisecond) // most wait by now; the test holds if they do not
	_, err = conn.ExecContext(t.Context(), "COMMIT")
	noError(t, err)
	noError(t, conn.Close())
	wg.Wait()
	return failed, fresh.Load()
}

// Of events that arrive at once, one that cannot be stored keeps no other from it, and one
// that is there twice is stored once.
func TestEventsTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	exec(t, path, `CREATE TRIGGER bad BEFORE INSERT ON events WHEN new.event_id = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END`)
	ids := []string{"bad"}
	for n := range 20 {
		ids = append(ids, fmt.Sprint(n), fmt.Sprint(n))
	}
	failed, added := addTogether(t, s, path, ids...)
	if len(failed) != 1 || failed["bad"] == nil || !strings.Contains(failed["bad"].Error(), "no") {
		t.Errorf("failed: %v, want bad alone", failed)
	}
	if n, _, err := s.CountEvents(t.Context(), store.EventFilter{}); err != nil || n != 20 || added != 20 {
		t.Errorf("%d events are stored, %v, and %d were called new; want 20", n, err, added)
	}
}

// Who waits when the store is closed gets an answer, which is the truth.
func TestCloseWhileEventsAreAdded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	var stored atomic.Int64
	var wg sync.WaitGroup
	begun := make(chan struct{}, 1)
	for worker := range 8 {
		wg.Go(func() {
			for n := range 1000 {
				added, err := s.Add(context.Background(), event(fmt.Sprint(worker, "-", n)), nil, "")
				if err != nil {
					return
				}
				if added {
					stored.Add(1)
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	<-begun
	closeStore(t, s)
	wg.Wait()
	again := openStore(t, path)
	if n, _, err := again.CountEvents(t.Context(), store.EventFilter{}); err != nil || int64(n) != stored.Load() {
		t.Errorf("%d events are stored, %v; %d were acknowledged", n, err, stored.Load())
	}
}

// A caller that gives up does not wait for others.
func TestAddEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	conn, err := raw(t, path).Conn(t.Context())
	noError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	noError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := s.Add(ctx, event("1"), nil, "")
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
	_, err = conn.ExecContext(t.Context(), "COMMIT")
	noError(t, err)
}
