package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/leaseend"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/sqllock"
)

func acquire(tb testing.TB, e sqllock.Engine, r lockengine.Request, ttl time.Duration) lockengine.Grant {
	tb.Helper()
	grant, err := e.Acquire(tb.Context(), r, ttl)
	if err != nil {
		tb.Fatalf("Acquire for %s: %v", r.Owner, err)
	}
	return grant
}

func release(tb testing.TB, e sqllock.Engine, r lockengine.Request) {
	tb.Helper()
	if err := e.Release(tb.Context(), r); err != nil {
		tb.Fatalf("Release: %v", err)
	}
}

func wantIs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("error is %v, want one that matches %q", err, target)
	}
}

func newLocker(tb testing.TB, e sqllock.Engine, cfg lock.Config) *lock.Locker {
	tb.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	l, err := lock.New(e, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

func execute(tb testing.TB, pool *sql.DB, statement string) {
	tb.Helper()
	if _, err := pool.ExecContext(tb.Context(), statement); err != nil {
		tb.Fatal(err)
	}
}

func rows(tb testing.TB, pool *sql.DB, table string) (n int) {
	tb.Helper()
	if err := pool.QueryRowContext(tb.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

func TestNew(t *testing.T) {
	pool, _ := openPool(t, file(t))
	for name, create := range map[string]func() (sqllock.Engine, error){
		"no pool":         func() (sqllock.Engine, error) { return sqllock.New(nil, sqllock.SQLite, sqllock.Config{}) },
		"unknown dialect": func() (sqllock.Engine, error) { return sqllock.New(pool, "oracle", sqllock.Config{}) },
		"bad name": func() (sqllock.Engine, error) {
			return sqllock.New(pool, sqllock.SQLite, sqllock.Config{Name: "\xff"})
		},
		"busy poller": func() (sqllock.Engine, error) { return sqllock.New(pool, sqllock.SQLite, sqllock.Config{PollFrom: 1}) },
		"poll to before from": func() (sqllock.Engine, error) {
			return sqllock.New(pool, sqllock.SQLite, sqllock.Config{PollFrom: time.Second, PollTo: time.Millisecond})
		},
	} {
		if _, err := create(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := sqllock.Migrate(t.Context(), pool, "oracle"); err == nil {
		t.Errorf("Migrate of an unknown dialect: %v", err)
	}
}

// What decides does not depend on settings of the connection.
func TestSettings(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		settings := []string{""}
		if d == sqllock.MySQL {
			settings = append(settings, "&clientFoundRows=true", "&interpolateParams=false", "&sql_mode=%27%27", "&time_zone=%27-05:00%27")
			if isMariaDB(t, pool) {
				settings = append(settings, "&sql_mode=%27SIMULTANEOUS_ASSIGNMENT%27", "&sql_mode=%27EMPTY_STRING_IS_NULL%27",
					"&sql_mode=%27EMPTY_STRING_IS_NULL,STRICT_ALL_TABLES%27", "&sql_mode=%27ORACLE%27", "&tx_isolation=%27READ-COMMITTED%27")
			} else {
				settings = append(settings, "&transaction_isolation=%27READ-COMMITTED%27")
			}
		}
		if d == sqllock.Postgres {
			settings = append(settings, "&default_transaction_isolation=serializable", "&TimeZone=America/New_York")
		}
		usual := open(t, dsn)
		for i, setting := range settings {
			t.Run(setting, func(t *testing.T) { decides(t, usual, open(t, dsn+setting), fmt.Sprint("k", i)) })
		}
	})
}

// decides has two engines decide about a key, whose row is not there, is held, has expired,
// and was released.
func decides(t *testing.T, one, two sqllock.Engine, key string) {
	t.Helper()
	mine, theirs := lockengine.Request{Key: key, Owner: "me:1"}, lockengine.Request{Key: key, Owner: "they:1"}
	first := acquire(t, two, mine, ttl)
	for _, e := range []sqllock.Engine{one, two} {
		_, err := e.Acquire(t.Context(), theirs, ttl)
		held, ok := errors.AsType[*lockengine.HeldError](err)
		if !ok || held.Holder.Owner != mine.Owner || held.Holder.TTL <= 0 || held.Holder.TTL > 2*ttl { // sessions of one server may differ in the time a little
			t.Fatalf("Acquire of a held key: %v", err)
		}
	}
	if again := acquire(t, two, mine, 50*time.Millisecond); again.Token < first.Token {
		t.Errorf("token %d after %d", again.Token, first.Token)
	}
	testwait.Until(t, "it expires", func() bool {
		h, err := one.Inspect(t.Context(), key)
		return err == nil && h.Owner == ""
	})
	wantIs(t, two.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], lockengine.ErrNotHeld)
	wantIs(t, two.Release(t.Context(), mine), lockengine.ErrNotHeld)
	second := acquire(t, two, theirs, ttl)
	if second.Token < first.Token+1024 {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	if h, err := one.Inspect(t.Context(), key); err != nil || h.Owner != theirs.Owner {
		t.Errorf("Inspect: %+v, %v", h, err)
	}
	errs := two.Renew(t.Context(), []lockengine.Request{mine, theirs, theirs}, ttl)
	wantIs(t, errs[0], lockengine.ErrNotHeld)
	if err := errors.Join(errs[1:]...); err != nil {
		t.Errorf("Renew: %v", err)
	}
	release(t, two, theirs)
	wantIs(t, two.Release(t.Context(), theirs), lockengine.ErrNotHeld)
	if third := acquire(t, one, mine, ttl); third.Token < second.Token+1024 {
		t.Errorf("token %d after %d", third.Token, second.Token)
	}
	release(t, one, mine)
}

// A key's token grows though the clock does not: an acquire may have read it long ago, or
// it was set back.
func TestTokensGrowBesideTheClock(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, _ := openPool(t, dsn)
		e := open(t, dsn)
		token := acquire(t, e, mine, ttl).Token
		release(t, e, mine)
		const hour = int64(time.Hour/time.Microsecond) * 1024
		execute(t, pool, fmt.Sprintf("UPDATE belay_lock SET token = token + %d, until_us = until_us + %d", hour, hour/1024))
		if next := acquire(t, e, theirs, ttl).Token; next < token+hour+1024 {
			t.Errorf("token %d after %d, which was an hour ahead", next, token+hour)
		}
		release(t, e, theirs)
		if err := sqllock.Sweep(t.Context(), e, time.Nanosecond); err != nil {
			t.Fatal(err)
		}
		if next := acquire(t, e, mine, ttl).Token; next < token+hour+2*1024 {
			t.Errorf("after a sweep, token %d after %d, which was an hour ahead", next, token+hour)
		}
	})
}

// A statement that another transaction is in the way of was not executed.
func TestInTheWay(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		impatient := strings.NewReplacer("busy_timeout(10000)", "busy_timeout(100)", "busy_timeout=10000", "busy_timeout=100").Replace(dsn)
		e := open(t, impatient+map[sqllock.Dialect]string{sqllock.MySQL: "&innodb_lock_wait_timeout=1", sqllock.Postgres: "&lock_timeout=100"}[d])
		acquire(t, e, mine, ttl)
		c, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, s := range []string{"BEGIN", "UPDATE belay_lock SET token = token + 1"} {
			if _, err := c.ExecContext(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		_, err = e.Acquire(t.Context(), mine, ttl)
		wantIs(t, err, lockengine.ErrNotSent)
		wantIs(t, e.Release(t.Context(), mine), lockengine.ErrNotSent)
		wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], lockengine.ErrNotSent)
		if _, err := c.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		release(t, e, mine)
	})
}

// A renewal that is executed late takes nothing from a later one.
func TestRenewalsOvertake(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		e := open(t, dsn)
		acquire(t, e, mine, time.Hour) // as after the later one
		if err := e.Renew(t.Context(), []lockengine.Request{mine}, time.Minute)[0]; err != nil {
			t.Fatal(err)
		}
		if h, err := e.Inspect(t.Context(), mine.Key); err != nil || h.TTL < 30*time.Minute {
			t.Errorf("it is held for another %v, %v", h.TTL, err)
		}
	})
}

// A row that a transaction has locked delays no renewals of others.
func TestRenewBesideALockedRow(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		if d == sqllock.SQLite {
			t.Skip("it locks no rows")
		}
		e := open(t, dsn+map[sqllock.Dialect]string{sqllock.MySQL: "&innodb_lock_wait_timeout=1", sqllock.Postgres: "&lock_timeout=1000"}[d])
		var rs []lockengine.Request
		for i := range 256 { // most of the table, so that to read all of it is cheap
			rs = append(rs, lockengine.Request{Key: fmt.Sprint("k", i), Owner: "me:1"})
			acquire(t, e, rs[i], time.Minute)
		}
		acquire(t, e, lockengine.Request{Key: "k0a", Owner: "they:1"}, time.Minute)
		tx, err := pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE belay_lock SET token = token + 1 WHERE name = 'k0a'"); err != nil {
			t.Fatal(err)
		}
		if err := e.Renew(t.Context(), rs, time.Minute)[0]; err != nil {
			t.Errorf("Renew: %v", err)
		}
	})
}

// TestTablesWithoutTheirKeys: a table that was copied without its primary key, or is partitioned
// by another column, excludes nobody.
func TestTablesWithoutTheirKeys(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		change := map[sqllock.Dialect][]string{
			sqllock.MySQL:    {"ALTER TABLE belay_lock DROP PRIMARY KEY, ADD PRIMARY KEY (name, until_us)", "ALTER TABLE belay_lock DROP PRIMARY KEY"},
			sqllock.Postgres: {"ALTER TABLE belay_lock DROP CONSTRAINT belay_lock_pkey"},
			sqllock.SQLite:   {"ALTER TABLE belay_lock RENAME TO old; CREATE TABLE belay_lock AS SELECT * FROM old"},
		}
		for _, statement := range change[d] {
			execute(t, pool, statement)
			e := open(t, dsn)
			for _, owner := range []string{"me:1", "they:1"} {
				r := lockengine.Request{Key: "k", Owner: owner}
				_, err := e.Acquire(t.Context(), r, ttl)
				wantIs(t, err, lockengine.ErrDenied)
				wantIs(t, e.Adopt(t.Context(), []lockengine.Request{r}, ttl)[0], lockengine.ErrDenied)
			}
			if d == sqllock.MySQL {
				wantIs(t, e.Ping(t.Context()), lockengine.ErrDenied)
			}
		}
	})
}

// What can't succeed says so, and what to do.
func TestDenied(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		e := open(t, dsn)
		_, err := e.Acquire(t.Context(), lockengine.Request{Key: strings.Repeat("k", 513), Owner: "me:1"}, ttl)
		wantIs(t, err, lockengine.ErrUnusable)
		_, err = e.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: strings.Repeat("o", 129)}, ttl)
		wantIs(t, err, lockengine.ErrDenied)

		pool, d := openPool(t, dsn)
		if err := e.Ping(t.Context()); err != nil {
			t.Errorf("Ping: %v", err)
		}
		execute(t, pool, "DROP TABLE belay_lock")
		for what, err := range map[string]error{
			"Ping": e.Ping(t.Context()), "Probe": e.Probe(t.Context(), "k"), "Release": e.Release(t.Context(), mine),
		} {
			wantIs(t, err, lockengine.ErrDenied)
			if err != nil && !strings.Contains(err.Error(), "sqllock.Migrate") {
				t.Errorf("%s does not say what to do: %v", what, err)
			}
		}
		if d != sqllock.SQLite {
			_, err := open(t, strings.Replace(dsn, "belay:", "belay:no", 1)).Acquire(t.Context(), mine, ttl)
			wantIs(t, err, lockengine.ErrDenied)
		}
		_ = e.Close(t.Context())
		wantIs(t, e.Release(t.Context(), mine), lockengine.ErrDenied)
		if _, err := e.Watch(t.Context(), "k", func() {}); err == nil {
			t.Error("Watch of a closed engine")
		}
	})
}

// Transactions that take all connections of a pool lose the locks that share it, and not
// those on a pool of their own.
func TestPoolOfItsOwn(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		shared, d := openPool(t, dsn)
		shared.SetMaxOpenConns(2)
		cfg := lock.Config{TTL: 2 * time.Second}
		starved, err := newLocker(t, openOn(t, shared, d), cfg).Acquire(t.Context(), "shared")
		if err != nil {
			t.Fatal(err)
		}
		own, err := newLocker(t, open(t, dsn), cfg).Acquire(t.Context(), "own")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			tx, err := shared.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
		}
		<-starved.Context().Done()
		wantIs(t, starved.Err(), leaseend.ErrUnrenewed)
		if err := own.Err(); err != nil {
			t.Errorf("on a pool of its own: %v", err)
		}
		if err := own.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
	})
}

// Old rows go, also while others use the table, and no lock goes with them.
func TestSweep(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, _ := openPool(t, dsn)
		e := open(t, dsn)
		marked := mine
		marked.Mark = time.Microsecond
		acquire(t, e, mine, ttl)
		release(t, e, marked)
		if err := sqllock.Sweep(t.Context(), e, time.Hour); err != nil {
			t.Fatal(err)
		}
		if locks, markers := rows(t, pool, "belay_lock"), rows(t, pool, "belay_done"); locks != 1 || markers != 1 {
			t.Errorf("%d locks and %d markers, want those that have just ended", locks, markers)
		}
		holder := open(t, dsn)
		var held []lockengine.Request
		for i := range 20 {
			held = append(held, lockengine.Request{Key: fmt.Sprint("held", i), Owner: "me:1"})
			acquire(t, holder, held[i], time.Minute)
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					r := lockengine.Request{Key: fmt.Sprint("k", w, ":", i%7), Owner: fmt.Sprint(w, ":", i)}
					_, err := holder.Acquire(t.Context(), r, time.Minute)
					if err == nil {
						err = holder.Release(t.Context(), r)
					}
					if err != nil && !errors.Is(err, lockengine.ErrNotSent) {
						t.Errorf("beside a sweep: %v", err)
					}
				}
			})
		}
		for range 50 {
			err := sqllock.Sweep(t.Context(), e, time.Nanosecond)
			if err != nil && !errors.Is(err, lockengine.ErrNotSent) && !errors.Is(err, lockengine.ErrNoAnswer) { // on SQLite others may always come first
				t.Error(err)
			}
			for _, err := range holder.Renew(t.Context(), held, time.Minute) {
				if err != nil && !errors.Is(err, lockengine.ErrNotSent) {
					t.Errorf("Renew beside a sweep: %v", err)
				}
			}
		}
		close(stop)
		wg.Wait()
		testwait.Until(t, "all is swept", func() bool {
			return sqllock.Sweep(t.Context(), e, time.Nanosecond) == nil && rows(t, pool, "belay_lock") == len(held) && rows(t, pool, "belay_done") == 0
		})
	})
}

// One statement looks for all keys that somebody waits for, and none if nobody does.
func TestPoller(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		e := open(t, dsn, sqllock.Config{PollFrom: time.Millisecond, PollTo: 2 * time.Millisecond})
		polls := make(chan int, 1000)
		sqllock.OnPoll(e, func(names int) {
			select {
			case polls <- names:
			default:
			}
		})
		const keys = 100
		holder := open(t, dsn)
		woken := make(chan string, 1)
		var stops []func()
		for i := range keys {
			r := lockengine.Request{Key: fmt.Sprint("k", i), Owner: "me:1"}
			acquire(t, holder, r, time.Minute)
			stop, err := e.Watch(t.Context(), r.Key, func() {
				select {
				case woken <- r.Key:
				default:
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			stops = append(stops, stop)
		}
		testwait.Until(t, "one look is for all", func() bool { return <-polls == keys })
		select {
		case key := <-woken:
			t.Errorf("woken for %s, which is held", key)
		default:
		}
		release(t, holder, lockengine.Request{Key: "k42", Owner: "me:1"})
		if key := <-woken; key != "k42" {
			t.Errorf("woken for %s, want k42", key)
		}
		for _, stop := range stops {
			stop()
		}
		testwait.Until(t, "the poller ends", func() bool { return !sqllock.Polling(e) })
	})
}

// A server that ends idle sessions costs no lock.
func TestIdleSessionsAreEnded(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		if d == sqllock.SQLite {
			t.Skip("it has no sessions")
		}
		others, end := "id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()", "KILL %d"
		if d == sqllock.Postgres {
			others, end = "pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()", "SELECT pg_terminate_backend(%d)"
		}
		e := open(t, dsn)
		acquire(t, e, mine, ttl)
		testwait.Until(t, "they have ended", func() bool {
			var id int64
			err := pool.QueryRowContext(t.Context(), "SELECT "+others+" LIMIT 1").Scan(&id)
			if err == nil {
				_, _ = pool.ExecContext(t.Context(), fmt.Sprintf(end, id))
			}
			return errors.Is(err, sql.ErrNoRows)
		})
		testwait.Until(t, "it has a session again", func() bool {
			err := e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0]
			if err != nil && !errors.Is(err, lockengine.ErrNotSent) && !errors.Is(err, lockengine.ErrNoAnswer) {
				t.Fatalf("Renew: %v", err)
			}
			return err == nil
		})
		release(t, e, mine)
	})
}
