package pgxguard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// TestDeadOpening: a connection that is dead when a transaction begins, or dies before its opening
// is answered, is replaced. Nothing was done on it.
func TestDeadOpening(t *testing.T) {
	s, seen := newTracedShop(t)
	direct, err := pgx.Connect(bg, s.pool.Config().ConnString())
	wantNil(t, err)
	defer func() { wantNil(t, direct.Close(bg)) }()
	kill := func() {
		_, err := direct.Exec(bg, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()")
		wantNil(t, err)
	}
	wantNil(t, s.apply(bg, "1"))
	for no, killed := range map[string]*func(){"before": nil, "within": &seen.batch} {
		wantNil(t, s.apply(bg, no)) // with its statements prepared
		if killed == nil {
			kill()
		} else {
			*killed = sync.OnceFunc(kill)
		}
		wantNil(t, s.apply(bg, no+", dead"))
	}
	if orders, claims := s.count(), s.claims(); orders != 5 || claims != 5 {
		t.Errorf("%d orders and %d claims, want 5 of each", orders, claims)
	}
	s.wantEvents(0)
}

// TestOpeningBehindPooler: an opening that a pooler has sent to another session is made again, statement by
// statement, and so are those behind it.
func TestOpeningBehindPooler(t *testing.T) {
	for name, opts := range map[string]func(no string) []guard.Option{
		"with a request":    func(no string) []guard.Option { return []guard.Option{guard.For(selling(no))} },
		"without a request": func(string) []guard.Option { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, pooled := teststack.PgBouncer(t)
			config, err := pgxpool.ParseConfig(pooled)
			wantNil(t, err)
			seen := new(trips)
			config.MaxConns, config.ConnConfig.Tracer, config.ConnConfig.DefaultQueryExecMode = 1, seen, pgx.QueryExecModeSimpleProtocol
			s := newShopOf(t, config)
			sell := func(no string) error {
				return s.Apply(bg, "order:"+no, guard.Insert(&order{No: no}), opts(no)...)
			}
			begun := func() (together, alone int) {
				for _, trip := range seen.all {
					if trip == "BEGIN" {
						alone++
					} else if strings.HasPrefix(trip, "BEGIN") {
						together++
					}
				}
				return together, alone
			}
			wantNil(t, sell("1"))
			seen.all = nil
			wantNil(t, sell("2"))
			if together, alone := begun(); together != 1 || alone != 0 {
				t.Errorf("in its session a transaction was begun by %q", seen.all)
			}
			other, err := pgx.ConnectConfig(bg, config.ConnConfig)
			wantNil(t, err)
			defer func() { wantNil(t, other.Close(bg)) }()
			_, err = other.Exec(bg, "BEGIN") // it gets the session that has just been used
			wantNil(t, err)
			seen.all = nil
			wantNil(t, errors.Join(sell("3"), sell("4")))
			if together, alone := begun(); together != 1 || alone != 2 {
				t.Errorf("in another session two transactions were begun by %q", seen.all)
			}
			wantIs(t, sell("3"), guard.ErrDuplicate)
			if n := s.count(); n != 4 {
				t.Errorf("%d orders, want 4", n)
			}
			s.wantEvents(0)
		})
	}
}

// TestOpeningEnds: an opening that waits ends with the caller's context, and with the patience of a
// caller who does not wait.
func TestOpeningEnds(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "1"))
	tx, err := s.pool.Begin(bg)
	wantNil(t, err)
	defer func() { wantNil(t, tx.Rollback(bg)) }()
	_, err = s.pool.Exec(bg, "CREATE TABLE kept AS SELECT * FROM belay_once; DELETE FROM belay_once; DELETE FROM orders")
	wantNil(t, err)
	_, err = tx.Exec(bg, "INSERT INTO belay_once SELECT * FROM kept")
	wantNil(t, err)
	wantIs(t, s.apply(bg, "1"), guard.ErrBusy)
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error)
	go func() { done <- s.apply(ctx, "1", guard.Wait(time.Hour)) }()
	s.awaitWaiting()
	cancel()
	wantIs(t, <-done, context.Canceled)
	if n := s.count(); n != 0 {
		t.Errorf("%d orders, want none", n)
	}
	s.wantEvents(0)
}

// TestLostCommitBehindOpening: the number that came with the opening proves the outcome of a COMMIT
// whose answer is lost.
func TestLostCommitBehindOpening(t *testing.T) {
	config, err := pgxpool.ParseConfig(teststack.Postgres(t))
	wantNil(t, err)
	var cut atomic.Pointer[string]
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return cutter{c, &cut}, err
	}
	s := newShopOf(t, config)
	wantNil(t, s.apply(bg, "warm"))
	const lost = 10
	unknown := 0
	for n := range lost {
		at := []string{"before", "after"}[n%2]
		cut.Store(&at)
		err := s.apply(bg, fmt.Sprint(n))
		switch {
		case errors.Is(err, guard.ErrUnknown):
			unknown++
		case (err == nil) != (at == "after"):
			t.Errorf("%v, but the connection was cut %s the COMMIT", err, at)
		}
	}
	if orders, claims := s.count(), s.claims(); orders != 1+lost/2 || claims != orders {
		t.Errorf("%d orders and %d claims, want %d of each", orders, claims, 1+lost/2)
	}
	if unknown > lost/4 { // on a machine that has other work, some are not answered in time
		t.Errorf("%d of %d are unknown, though they are proven", unknown, lost)
	}
}

// A cutter is a connection that is cut before the next COMMIT, or after it.
type cutter struct {
	net.Conn
	cut *atomic.Pointer[string]
}

func (c cutter) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("COMMIT")) {
		return c.Conn.Write(b)
	}
	at := c.cut.Swap(nil)
	if at == nil {
		return c.Conn.Write(b)
	}
	if *at == "after" {
		_, _ = c.Conn.Write(b)
		_, _ = c.Read(make([]byte, 1)) // once it was executed
	}
	_ = c.Close()
	return len(b), nil
}

// TestLockIsLostInOpening: no statement of the operation is sent once the lock is known to be lost.
func TestLockIsLostInOpening(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "1"))
	tx, err := s.pool.Begin(bg)
	wantNil(t, err)
	_, err = s.pool.Exec(bg, "CREATE TABLE kept AS SELECT * FROM belay_once; DELETE FROM belay_once; DELETE FROM orders")
	wantNil(t, err)
	_, err = tx.Exec(bg, "INSERT INTO belay_once SELECT * FROM kept")
	wantNil(t, err)
	locker, err := lock.New(s.Engine(), lock.Config{TTL: 2 * time.Second})
	wantNil(t, err)
	s.Guard.Guard, err = guard.New(s.db, locker, guard.Config{Service: "test", Publisher: &s.Events})
	wantNil(t, err)
	t.Cleanup(func() { wantNil(t, errors.Join(s.Close(bg), locker.Close(bg))) })
	done := make(chan error)
	go func() { done <- s.apply(bg, "1", guard.Wait(time.Hour)) }()
	s.awaitWaiting()
	if !s.Forget("order:1") {
		t.Fatal("the key is not locked")
	}
	testwait.Until(t, "the loss is noticed", func() bool { return len(s.Events.All()) > 0 || s.waiting() == 0 })
	wantNil(t, tx.Rollback(bg))
	if err := <-done; err == nil || s.count() != 0 || s.claims() != 0 {
		t.Errorf("%v, %d orders and %d claims, want an error and none", err, s.count(), s.claims())
	}
	if events := s.Events.All(); len(events) != 1 || events[0].Outcome != notify.OutcomeRolledBack {
		t.Errorf("events %v, want that of a lock that was lost", events)
	}
}
