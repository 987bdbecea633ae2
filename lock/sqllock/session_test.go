package sqllock_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/sqllock"
)

// Every call fails on a connection without autocommit, because other connections would not see what
// it writes. It leaves no row locked.
func TestAutocommitIsOff(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		if _, d := openPool(t, dsn); d != sqllock.MySQL {
			t.Skip("it has no such setting")
		}
		for _, setting := range []string{"", "&sql_mode=%27%27", "&interpolateParams=false"} {
			off, usual := open(t, dsn+"&autocommit=0"+setting), open(t, dsn+"&innodb_lock_wait_timeout=1")
			acquire(t, usual, mine, ttl)
			marked := mine
			marked.Mark = time.Minute
			for what, call := range map[string]func() error{
				"Acquire": func() error { _, err := off.Acquire(t.Context(), mine, ttl); return err },
				"Acquire of none": func() error {
					_, err := off.Acquire(t.Context(), lockengine.Request{Key: "none", Owner: "me:1"}, ttl)
					return err
				},
				"Renew":   func() error { return off.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0] },
				"Release": func() error { return off.Release(t.Context(), marked) },
				"Inspect": func() error { _, err := off.Inspect(t.Context(), mine.Key); return err },
				"Probe":   func() error { return off.Probe(t.Context(), mine.Key) },
				"Sweep":   func() error { return sqllock.Sweep(t.Context(), off, time.Nanosecond) },
			} {
				err := call()
				if !errors.Is(err, lockengine.ErrDenied) || !strings.Contains(err.Error(), "autocommit is off") {
					t.Errorf("%s%s: %v", what, setting, err)
				}
			}
			if err := usual.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0]; err != nil {
				t.Errorf("Renew by another: %v", err)
			}
			release(t, usual, mine)
		}
	})
}

// demote makes a connection read-only.
var demote = map[sqllock.Dialect]string{
	sqllock.MySQL:    "SET SESSION TRANSACTION READ ONLY",
	sqllock.Postgres: "SET default_transaction_read_only = on",
	sqllock.SQLite:   "PRAGMA query_only = 1",
}

// A connection whose server has become read-only is not used again: the next one may lead to the
// new primary.
func TestServerIsDemoted(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		pool.SetMaxOpenConns(1)
		e := openOn(t, pool, d)
		acquire(t, e, mine, ttl)
		execute(t, pool, demote[d])
		wantIs(t, e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0], lockengine.ErrNotSent)
		if err := e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0]; err != nil {
			t.Errorf("Renew on the next connection: %v", err)
		}
		execute(t, pool, demote[d])
		_, err := e.Acquire(t.Context(), mine, ttl)
		wantIs(t, err, lockengine.ErrNotSent)
		release(t, e, mine)
	})
}

// Locks exclude each other at every isolation level. A statement that the level makes fail was not
// executed, and its error says so.
func TestIsolation(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		name, levels := "default_transaction_isolation", []string{"repeatable%20read", "serializable"}
		switch d {
		case sqllock.SQLite:
			t.Skip("it has one")
		case sqllock.MySQL:
			name, levels = "transaction_isolation", []string{"%27READ-COMMITTED%27", "%27REPEATABLE-READ%27", "%27SERIALIZABLE%27"}
			if isMariaDB(t, pool) {
				name = "tx_isolation"
			}
		}
		for _, level := range levels {
			t.Run(level, func(t *testing.T) {
				setting := "&" + name + "=" + level
				contend(t, []sqllock.Engine{open(t, dsn+setting), open(t, dsn+setting)})
			})
		}
	})
}

// Locks exclude each other behind a proxy that gives each statement the next of its sessions: an engine
// needs nothing of the session of the statement before.
func TestMultiplexed(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		var session driver.Connector
		_, d := openPool(t, dsn)
		switch d {
		case sqllock.SQLite:
			t.Skip("it has no proxy")
		case sqllock.Postgres:
			config, err := pgx.ParseConfig(dsn)
			if err != nil {
				t.Fatal(err)
			}
			session = stdlib.GetConnector(*config)
		default:
			config, err := mysql.ParseDSN(dsn)
			if err != nil {
				t.Fatal(err)
			}
			if session, err = mysql.NewConnector(config); err != nil {
				t.Fatal(err)
			}
		}
		var engines []sqllock.Engine
		for range 2 {
			pool := sql.OpenDB(&testdb.Multiplexer{Sessions: []driver.Connector{session, session, session}})
			t.Cleanup(func() { _ = pool.Close() })
			engines = append(engines, openOn(t, pool, d))
		}
		contend(t, engines)
	})
}

func isMariaDB(t *testing.T, pool *sql.DB) bool {
	t.Helper()
	var version string
	if err := pool.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(version, "MariaDB")
}

// Nodes of a Galera cluster find out at a commit that another has a lock, and commit nothing
// then.
func TestGalera(t *testing.T) {
	nodes := teststack.Galera(t)
	migrate(t, nodes[0])
	for _, setting := range []string{"", "&wsrep_sync_wait=15", "&wsrep_retry_autocommit=0"} {
		t.Run(setting, func(t *testing.T) {
			var engines []sqllock.Engine
			for _, dsn := range nodes {
				engines = append(engines, open(t, dsn+setting))
			}
			contend(t, engines)
		})
	}
}

// contend has callers of all engines acquire, renew and release two keys.
func contend(t *testing.T, engines []sqllock.Engine) {
	t.Helper()
	var holders [2]atomic.Int64
	var failed, granted atomic.Int64
	notSent := func(what string, err error) bool {
		_, held := errors.AsType[*lockengine.HeldError](err)
		switch {
		case errors.Is(err, lockengine.ErrNotSent):
			failed.Add(1)
			return true
		case err != nil && !held:
			t.Errorf("%s: %v", what, err)
		}
		return false
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			e, key := engines[w%len(engines)], w/len(engines)%2
			for i := range 60 {
				r := lockengine.Request{Key: fmt.Sprint("k", key), Owner: fmt.Sprint(w, ":", i)}
				_, err := e.Acquire(t.Context(), r, ttl)
				if notSent("Acquire", err) {
					if h, err := e.Inspect(t.Context(), r.Key); err == nil && h.Owner == r.Owner {
						t.Error("an acquire that was not executed has the lock")
					}
				}
				if err != nil {
					continue
				}
				granted.Add(1)
				if n := holders[key].Add(1); n != 1 {
					t.Errorf("%d holders", n)
				}
				notSent("Renew", e.Renew(t.Context(), []lockengine.Request{r}, ttl)[0])
				holders[key].Add(-1)
				for notSent("Release", e.Release(t.Context(), r)) {
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d grants, %d calls failed", granted.Load(), failed.Load())
	if granted.Load() == 0 {
		t.Error("nothing was granted")
	}
}
