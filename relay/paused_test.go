package relay_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// A relay that is paused holds up no other one, whatever statement it has sent last. Its session
// stays open for hours, and with it all that its transaction has locked.
func TestPausedBehindStatement(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"DELETE", "INSERT INTO belay_parked", "UPDATE belay_lane", "INSERT INTO belay_relay"} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, p place) {
				store(t, p.db, append(rowsOf("a", 3), rowsOf("b", 3)...)...)
				paused := p.begin(t, childStop+"="+statement, childBad+"=b/0")
				testwait.Until(t, "it is paused", func() bool { return isPaused(t, paused) })
				p.relay(t)
				emptied(t, p.db)
				testwait.Until(t, "no key is parked", func() bool { return count(t, p.db, "belay_parked") == 0 })
			})
		})
	}
}

// A session that has locked a message keeps it, and no others, from being deleted; on MySQL so do,
// for the innodb_lock_wait_timeout, the statements that have waited for it.
func TestLockedMessage(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		store(t, p.db, append(rowsOf("a", 3), rowsOf("b", 3)...)...)
		db := p.db
		if p.kind == "mysql" {
			db = testdb.OpenMySQL(t, p.dsn+"&innodb_lock_wait_timeout=1")
		}
		somebody := p.db.Begin()
		defer somebody.Rollback()
		testdb.WantNil(t, somebody.Exec("SELECT id FROM belay_message WHERE message_id = 'a/1' FOR UPDATE").Error)
		testdb.WantNil(t, somebody.Exec("INSERT INTO belay_message (lane, message_id, key_sum, message_key, topic, headers, body, created_at) "+
			"VALUES (0, 'uncommitted', 'aaaaaaaaaaaaaaaa', 'u', 'sale', '', '', 0)").Error)
		var r recorder
		start(t, db, relay.WithLimit(relay.WithLease(to(&r), time.Hour), time.Second))
		testwait.Until(t, "one message is left", func() bool { return count(t, p.db, "belay_message") == 1 })
		store(t, p.db, row("c", 0))
		testwait.Until(t, "a later message is sent", func() bool { return len(of(r.ids(), "c")) == 1 })
		testdb.WantNil(t, somebody.Rollback().Error)
		emptied(t, p.db)
		if n := len(r.ids()); n != 7 {
			t.Errorf("%d messages were sent, want 7: %v", n, r.ids())
		}
	})
}

// A session that has locked a dead letter keeps no other key.
func TestLockedDeadLetter(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		var r recorder
		r.failWith(func(m relay.Message) error {
			if m.ID == "a/0" || m.ID == "b/0" {
				return relay.ErrRejected
			}
			return nil
		})
		store(t, p.db, row("a", 0), row("b", 0), row("b", 1))
		start(t, p.db, relay.WithLimit(relay.WithLease(to(&r), time.Hour), time.Second))
		testwait.Until(t, "both are dead letters", func() bool { return len(list(t, p.db)) == 2 })
		somebody := p.db.Begin()
		defer somebody.Rollback()
		testdb.WantNil(t, somebody.Exec("SELECT id FROM belay_message WHERE message_id = 'a/0' FOR UPDATE").Error)
		store(t, p.db, row("c", 0))
		testwait.Until(t, "another key is sent", func() bool { return len(of(r.ids(), "c")) == 1 })
		testdb.WantNil(t, relay.Drop(bg, p.db, "b/0"))
		testwait.Until(t, "a follower is sent", func() bool { return len(of(r.ids(), "b")) == 1 })
	})
}

// Bodies that do not fit into what a relay has in hand are not read again and again.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		const n, size = 100, 256 << 10
		for i := range n {
			r := row("a", i)
			r.Key, r.Body = "", make([]byte, size)
			store(t, p.db, r)
		}
		var read atomic.Int64
		c, err := connector(p.kind, p.dsn, &read)
		testdb.WantNil(t, err)
		db, err := openOn(p.kind, c)
		testdb.WantNil(t, err)
		pool, err := db.DB()
		testdb.WantNil(t, err)
		defer pool.Close()
		var r recorder
		running := start(t, db, relay.WithRoom(to(&r), 8*size))
		emptied(t, p.db)
		testdb.WantNil(t, running.Close(bg))
		if read.Load() > 3*n*size {
			t.Errorf("%d MiB were read, and %d were stored", read.Load()>>20, n*size>>20)
		}
	})
}

// isPaused reports whether a process is paused, or dead.
func isPaused(t *testing.T, p *testproc.Process) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.ID()) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "T")
}

// openKind opens a pool in a process without a test. After the first statement with the given
// beginning the process is paused.
func openKind(kind, dsn, stop string) (*gorm.DB, error) {
	c, err := connector(kind, dsn, new(atomic.Int64))
	if err != nil {
		return nil, err
	}
	return openOn(kind, &pauser{Connector: c, at: stop})
}

// connector connects to a database through connections that count what they read.
func connector(kind, dsn string, read *atomic.Int64) (driver.Connector, error) {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &counting{c, read}, err
	}
	if kind == "mysql" {
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			return nil, err
		}
		cfg.InterpolateParams = true // a statement is one call
		cfg.DialFunc = dial
		return mysql.NewConnector(cfg)
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.DialFunc = dial
	return stdlib.GetConnector(*cfg), nil
}

type counting struct {
	net.Conn
	read *atomic.Int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

func openOn(kind string, c driver.Connector) (*gorm.DB, error) {
	cfg := &gorm.Config{Logger: logger.Discard}
	if kind == "mysql" {
		return gorm.Open(gormmysql.New(gormmysql.Config{Conn: sql.OpenDB(c)}), cfg)
	}
	return gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: sql.OpenDB(c)}), cfg)
}

// A pauser pauses the process after a statement.
type pauser struct {
	driver.Connector
	at   string
	once sync.Once
}

func (p *pauser) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	return &pausing{c, p}, err
}

type pausing struct {
	driver.Conn
	p *pauser
}

func (c *pausing) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if c.p.at != "" && err == nil && strings.HasPrefix(query, c.p.at) {
		c.p.once.Do(func() { err = syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
	}
	return res, err
}

func (c *pausing) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *pausing) CheckNamedValue(v *driver.NamedValue) error {
	return c.Conn.(driver.NamedValueChecker).CheckNamedValue(v)
}
