package pgxguard_test

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// TestDeadPrelude: a connection that is dead when a transaction begins, or dies before its prelude
// is answered, is replaced. Nothing was done on it.
func TestDeadPrelude(t *testing.T) {
	s, seen := newTracedShop(t)
	direct := s.connect()
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

// TestPreludeBehindPooler: a prelude that a pooler has sent to another session is made again, statement by
// statement, and so are those behind it.
func TestPreludeBehindPooler(t *testing.T) {
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
			wantNil(t, sell("1"))
			seen.all = nil
			wantNil(t, sell("2"))
			if together, alone := seen.begins(); together != 1 || alone != 0 {
				t.Errorf("in its session a transaction was begun by %q", seen.all)
			}
			other, err := pgx.ConnectConfig(bg, config.ConnConfig)
			wantNil(t, err)
			defer func() { wantNil(t, other.Close(bg)) }()
			_, err = other.Exec(bg, "BEGIN") // it gets the session that has just been used
			wantNil(t, err)
			seen.all = nil
			wantNil(t, errors.Join(sell("3"), sell("4")))
			if together, alone := seen.begins(); together != 1 || alone != 2 {
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

// TestPreludeEnds: a prelude that waits ends with the caller's context, and with the patience of a
// caller who does not wait.
func TestPreludeEnds(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "1"))
	s.claimElsewhere()
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

// TestLostCommitBehindPrelude: the number that came with the prelude proves the outcome of a COMMIT
// whose answer is lost.
func TestLostCommitBehindPrelude(t *testing.T) {
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

// TestLockIsLostInPrelude: no statement of the operation is sent once the lock is known to be lost.
func TestLockIsLostInPrelude(t *testing.T) {
	s := newShop(t)
	wantNil(t, s.apply(bg, "1"))
	tx := s.claimElsewhere()
	s.configure(lock.Config{TTL: 2 * time.Second}, guard.Config{})
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

// TestNoAnswerToPrelude: a database that does not answer in time is not asked again. The end of that limit
// is not that of the caller's context.
func TestNoAnswerToPrelude(t *testing.T) {
	s, seen := newTracedShop(t)
	wantNil(t, s.apply(bg, "1"))
	s.configure(lock.Config{}, guard.Config{EndTimeout: time.Second})
	direct := s.connect()
	for _, table := range []string{"orders", "belay_once"} {
		migration, err := direct.Begin(bg)
		wantNil(t, err)
		_, err = migration.Exec(bg, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
		wantNil(t, err)
		seen.all = nil
		err = s.apply(bg, "2")
		if together, alone := seen.begins(); err == nil || errors.Is(err, context.DeadlineExceeded) || together != 1 || alone != 0 {
			t.Errorf("%s: %v, begun by %q", table, err, seen.all)
		}
		wantNil(t, migration.Rollback(bg))
	}
	wantNil(t, s.apply(bg, "2"))
	s.wantEvents(0)
}

// TestServerDiesBeforeCommit: the server dies while the operation does something else, behind its last
// statement. No COMMIT is sent, so nothing is unknown.
func TestServerDiesBeforeCommit(t *testing.T) {
	config, err := pgxpool.ParseConfig(teststack.Postgres(t))
	wantNil(t, err)
	var dead atomic.Bool
	var made []net.Conn
	dial := config.ConnConfig.DialFunc
	config.MaxConns = 1
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dead.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		c, err := dial(ctx, network, addr)
		made = append(made, c)
		return c, err
	}
	s := newShopOf(t, config)
	wantNil(t, s.apply(bg, "1"))
	err = s.Do(bg, "order:2", func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Create(&order{No: "2"}).Error; err != nil {
			return err
		}
		dead.Store(true)
		for _, c := range made {
			_ = c.Close()
		}
		<-time.After(50 * time.Millisecond) // it computes
		return nil
	}, guard.For(selling("2")))
	if err == nil || errors.Is(err, guard.ErrUnknown) {
		t.Errorf("%v, want an error that says that nothing was done", err)
	}
	s.wantEvents(0)
}

// TestValueIsRefused: an operation with a value that the server refuses does not slow down others.
func TestValueIsRefused(t *testing.T) {
	s, seen := newTracedShop(t)
	wantNil(t, s.apply(bg, "warm"))
	if err := s.apply(bg, "a\x00b"); err == nil {
		t.Error("the server has taken a NUL in a text")
	}
	wantNil(t, s.apply(bg, "1"))
	seen.all = nil
	wantNil(t, s.apply(bg, "2"))
	if together, alone := seen.begins(); together != 1 || alone != 0 {
		t.Errorf("begun by %q", seen.all)
	}
	s.wantEvents(0)
}

// astray is a pipeline behind a pooler that sends looks to a replica, which lacks every row.
type astray struct{ pipeline.Pipeline }

func (p astray) Send(ctx context.Context, all []pipeline.Statement) ([]pipeline.Result, error) {
	done, err := p.Pipeline.Send(ctx, all)
	for i := range done {
		if strings.Contains(all[i].Query, "EXISTS (") {
			done[i].Text = "f 1"
		}
	}
	return done, err
}

// TestLookOfAnotherSession: what a look has read in another session is not counted: a repeat is no alarm.
func TestLookOfAnotherSession(t *testing.T) {
	s := newShop(t)
	sell := func() error { return s.Apply(bg, "order:1", guard.Insert(&order{No: "1", Amount: 1})) }
	wantNil(t, sell())
	var of func(driver.Conn) pipeline.Pipeline
	of = pipeline.Register(func(dc driver.Conn) pipeline.Pipeline { return astray{of(dc)} })
	t.Cleanup(func() { pipeline.Register(of) })
	for range 2 {
		wantIs(t, sell(), guard.ErrDuplicate)
	}
	s.wantEvents(0)
}
