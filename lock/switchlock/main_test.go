package switchlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/switchlock"
)

func TestMain(m *testing.M) {
	lockhistory.Main(func(where string) (lockengine.Engine, func(), error) {
		e, closeAll, err := connect(where)
		return e, closeAll, err
	})
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

// A store is a source in memory. It fails while it is broken.
type store struct {
	mu     sync.Mutex
	record switchlock.Record
	broken error
	reads  int
}

func (s *store) Read(ctx context.Context) (switchlock.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.record, s.broken
}

func (s *store) Swap(ctx context.Context, old, next switchlock.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	if s.record.Epoch != old.Epoch || s.record.Settled != old.Settled {
		return switchlock.ErrChanged
	}
	s.record = next
	return nil
}

func (s *store) set(r switchlock.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = r
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// open returns an engine that ends with the test.
func open(tb testing.TB, cfg switchlock.Config) switchlock.Engine {
	tb.Helper()
	e, err := switchlock.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// eventually waits until ok returns true.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	const limit = time.Minute
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			tb.Fatalf("not within %v: %s", limit, what)
		}
		<-time.After(time.Millisecond)
	}
}

// to switches to an engine, and returns when e has read the record.
func to(tb testing.TB, e switchlock.Engine, name string) switchlock.Record {
	tb.Helper()
	r, err := e.To(tb.Context(), switchlock.Change{To: name})
	if err != nil {
		tb.Fatal(err)
	}
	eventually(tb, "learned", func() bool { return e.State().Epoch >= r.Epoch })
	return r
}

const (
	ttl     = 20 * time.Second
	lease   = 10 * time.Second
	longest = time.Hour
)

var (
	mine   = lockengine.Request{Key: "k", Owner: "me:1"}
	theirs = lockengine.Request{Key: "k", Owner: "they:1"}
)
