package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

func openSource(t *testing.T, dsn, name string) switchlock.Source {
	t.Helper()
	pool, d := openPool(t, dsn)
	s, err := sqllock.NewSource(pool, d, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var record = switchlock.Record{
	Epoch: 1, From: "redis", To: "redis", Settled: true,
	Lease: 10 * time.Second, TTL: 30 * time.Second, Cross: 41 * time.Second, Base: 1 << 40, By: "älice'",
}

// A record is read as it was written, and is replaced only if it is the one that Swap names.
func TestSource(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		ctx, s := t.Context(), openSource(t, dsn, "orders")
		if r, err := s.Read(ctx); err != nil || r != (switchlock.Record{}) {
			t.Fatalf("before the first record: %+v, %v", r, err)
		}
		swap(t, s, switchlock.Record{}, record, nil)
		swap(t, openSource(t, dsn, "orders"), switchlock.Record{}, record, switchlock.ErrChanged)
		swap(t, openSource(t, dsn, "Orders"), switchlock.Record{}, record, nil) // another name

		next := record
		next.Epoch, next.To, next.Settled, next.By = 2, "sql", false, ""
		swap(t, s, next, next, switchlock.ErrChanged)
		swap(t, s, record, next, nil)
		swap(t, s, record, next, switchlock.ErrChanged)
		settled := next
		settled.Settled = true
		swap(t, s, settled, record, switchlock.ErrChanged)
		swap(t, s, next, settled, nil)
		if r, err := openSource(t, dsn, "orders").Read(ctx); err != nil || r != settled {
			t.Errorf("read %+v, %v, want %+v", r, err, settled)
		}
	})
}

func swap(t *testing.T, s switchlock.Source, old, next switchlock.Record, want error) {
	t.Helper()
	if err := s.Swap(t.Context(), old, next); !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Fatalf("swap %+v for %+v: %v, want %v", old, next, err, want)
	}
	if r, err := s.Read(t.Context()); want == nil && (err != nil || r != next) {
		t.Fatalf("read %+v, %v, want %+v", r, err, next)
	}
}

// If many callers replace one record at once, one of them succeeds.
func TestOneSwaps(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		swap(t, openSource(t, dsn, "one"), switchlock.Record{}, record, nil)
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			s, next := openSource(t, dsn, "one"), record
			next.Epoch, next.By = 2, fmt.Sprint(i)
			wg.Go(func() {
				switch err := s.Swap(context.Background(), record, next); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, switchlock.ErrChanged):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := won.Load(); n != 1 {
			t.Errorf("%d have replaced it", n)
		}
	})
}

// A server that takes no writes any more has no record, not even none, and its connection is
// not used again: the next one may be to the server that does.
func TestSourceIsDemoted(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		pool.SetMaxOpenConns(1)
		s, err := sqllock.NewSource(pool, d, "orders")
		if err != nil {
			t.Fatal(err)
		}
		swap(t, s, switchlock.Record{}, record, nil)
		next := record
		next.Epoch = 2
		execute(t, pool, demote[d])
		if err := s.Swap(t.Context(), record, next); !errors.Is(err, lockengine.ErrNotSent) {
			t.Errorf("Swap: %v", err)
		}
		swap(t, s, record, next, nil)
		for _, name := range []string{"orders", "nobody's"} {
			s, err := sqllock.NewSource(pool, d, name)
			if err != nil {
				t.Fatal(err)
			}
			sqllock.Demote(s)
			if r, err := s.Read(t.Context()); err == nil || pool.Stats().OpenConnections > 0 {
				t.Errorf("%s: read %+v, %v, and %d connections are left", name, r, err, pool.Stats().OpenConnections)
			}
		}
	})
}

// If the answer to a COMMIT is lost, Swap ends with its context, and keeps no connection. It may have
// replaced the record.
func TestSwapWithoutAnswer(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		if _, d := openPool(t, dsn); d == sqllock.SQLite {
			t.Skip("it has no network")
		}
		swap(t, openSource(t, dsn, "orders"), switchlock.Record{}, record, nil)
		link := testdb.NewLink(t, testdb.AddrOf(t, dsn))
		pool, d := openPool(t, link.Through(t, dsn))
		s, err := sqllock.NewSource(pool, d, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := record
		next.Epoch = 2
		ctx, cancel := context.WithCancel(t.Context())
		swallowed := link.Swallow("COMMIT")
		go func() {
			<-swallowed
			cancel()
		}()
		if err := s.Swap(ctx, record, next); !errors.Is(err, context.Canceled) || errors.Is(err, lockengine.ErrNotSent) {
			t.Errorf("Swap: %v", err)
		}
		if n := pool.Stats().OpenConnections; n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

func TestNewSourceRefuses(t *testing.T) {
	pool, d := openPool(t, file(t))
	for name, f := range map[string]func() (switchlock.Source, error){
		"no pool":         func() (switchlock.Source, error) { return sqllock.NewSource(nil, d, "x") },
		"no name":         func() (switchlock.Source, error) { return sqllock.NewSource(pool, d, "") },
		"unknown dialect": func() (switchlock.Source, error) { return sqllock.NewSource(pool, "oracle", "x") },
	} {
		if _, err := f(); err == nil {
			t.Error(name, "is accepted")
		}
	}
	s := openSource(t, file(t), "x") // without tables
	if _, err := s.Read(t.Context()); err == nil {
		t.Error("a record was read where no table is")
	}
}
