package simdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
)

// what names an error as the drivers return it.
func what(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, driver.ErrBadConn):
		return "bad connection"
	case errors.Is(err, mysql.ErrInvalidConn):
		return "invalid connection"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "unexpected EOF"
	}
	return resultOf(nil, 0, err)
}

// A client is the pool of a program. waits returns when n statements wait for a lock.
type client struct {
	t        *testing.T
	pool     *sql.DB
	postgres bool
	waits    func(n int)
	told     []string
}

func (c *client) tell(name string, err error) { c.told = append(c.told, name+": "+what(err)) }

func (c *client) conn() (*sql.Conn, int64) {
	conn, err := c.pool.Conn(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	var id int64
	if err := conn.QueryRowContext(ctx, map[bool]string{false: "SELECT CONNECTION_ID()", true: "SELECT pg_backend_pid()"}[c.postgres]).Scan(&id); err != nil {
		c.t.Fatal(err)
	}
	return conn, id
}

// kill ends a session, and returns when it is gone.
func (c *client) kill(by *sql.Conn, id int64) {
	for {
		var err error
		if c.postgres {
			var sent bool
			query := "SELECT CASE WHEN wait_event = 'SyncRep' THEN FALSE ELSE pg_terminate_backend(pid) END FROM pg_stat_activity WHERE pid = $1 AND (backend_start = $2) IS NOT FALSE"
			err = by.QueryRowContext(ctx, query, id, sql.NullTime{}).Scan(&sent)
		} else {
			_, err = by.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
		}
		if errors.Is(err, sql.ErrNoRows) || what(err) == "error 1094" {
			return
		}
		if err != nil {
			c.t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (c *client) exec(conn *sql.Conn, sql string) error {
	_, err := conn.ExecContext(ctx, sent{sql: sql}.to(c.postgres))
	return err
}

func (s sent) to(postgres bool) string {
	if postgres {
		return s.postgres().sql
	}
	return s.sql
}

const (
	insertA = "INSERT INTO `orders` (`no`,`amount`) VALUES ('a',1)"
	countA  = "SELECT COUNT(*) FROM `orders` WHERE `no` = 'a'"
)

// killed: sessions are killed that are idle, in a transaction, and that wait.
func (c *client) killed() {
	admin, _ := c.conn()
	defer admin.Close()
	idle, id := c.conn()
	c.tell("begin", c.exec(idle, "START TRANSACTION"))
	c.tell("insert", c.exec(idle, insertA))
	c.kill(admin, id)
	c.tell("statement of a killed session", c.exec(idle, countA))
	c.tell("the next", c.exec(idle, countA))
	_ = idle.Close()

	holder, _ := c.conn()
	c.tell("begin", c.exec(holder, "START TRANSACTION"))
	c.tell("insert", c.exec(holder, insertA))
	waiter, id := c.conn()
	done := make(chan error)
	go func() { done <- c.exec(waiter, insertA) }()
	c.waits(1)
	c.kill(admin, id)
	c.tell("statement that waits in a killed session", <-done)
	c.tell("the next", c.exec(waiter, countA))
	c.tell("rollback", c.exec(holder, "ROLLBACK"))
	_ = waiter.Close()
	_ = holder.Close()
}

// remains is how many rows a statement has inserted whose context has ended. MariaDB goes on
// with it.
func (c *client) remains() int {
	if c.postgres {
		return 0
	}
	return 1
}

// ended: the contexts of statements end that wait.
func (c *client) ended() {
	admin, _ := c.conn()
	defer admin.Close()
	holder, _ := c.conn()
	c.tell("begin", c.exec(holder, "START TRANSACTION"))
	c.tell("insert", c.exec(holder, insertA))
	waiter, _ := c.conn()
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := waiter.ExecContext(short, sent{sql: insertA}.to(c.postgres))
	c.tell("statement that waits", err)
	c.tell("the next", c.exec(waiter, countA))
	if c.postgres {
		c.waits(0) // it is cancelled
	}
	c.tell("rollback", c.exec(holder, "ROLLBACK"))
	_ = waiter.Close()
	_ = holder.Close()
	for n := -1; n != c.remains(); <-time.After(5 * time.Millisecond) {
		if err := admin.QueryRowContext(ctx, sent{sql: countA}.to(c.postgres)).Scan(&n); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestAsRealDrivers compares what a program gets when sessions are killed and contexts
// end.
func TestAsRealDrivers(t *testing.T) {
	always := gateFunc(func(context.Context, Call) Fate { return Execute })
	for name, p := range map[string]Personality{"mariadb": MariaDB, "postgres": PostgreSQL} {
		for story, run := range map[string]func(*client){"killed": (*client).killed, "ended": (*client).ended} {
			t.Run(name+"/"+story, func(t *testing.T) {
				r := newServer(t, p)
				for _, sql := range sentinels(r.postgres) {
					r.exec(r.admin, sql)
				}
				onServer := &client{t: t, pool: r.pool, postgres: r.postgres, waits: func(n int) {
					testwait.Until(t, "statements that wait", func() bool { return r.waiting() == n })
				}}
				run(onServer)
				var simulated *client
				synctest.Test(t, func(t *testing.T) {
					db := New(p, Knobs{})
					db.Exec(sentinels(db.postgres())...)
					pool := sql.OpenDB(db.Connector("p", always))
					defer pool.Close()
					simulated = &client{t: t, pool: pool, postgres: db.postgres(), waits: func(int) { synctest.Wait() }}
					run(simulated)
				})
				if !slices.Equal(onServer.told, simulated.told) {
					t.Errorf("real:      %q\nsimulated: %q", onServer.told, simulated.told)
				}
			})
		}
	}
}

type gateFunc func(context.Context, Call) Fate

func (f gateFunc) Pass(ctx context.Context, c Call) Fate { return f(ctx, c) }

// waiting returns how many sessions of the database wait for a lock.
func (r *server) waiting() (n int) {
	question := "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	if !r.postgres {
		ids, err := testdb.InnoDBWaiting(ctx, r.admin)
		if err != nil {
			r.t.Fatal(err)
		}
		question = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND id IN (0"
		for _, id := range ids {
			question += "," + strconv.FormatInt(id, 10)
		}
		question += ")"
	}
	if err := r.admin.QueryRowContext(ctx, question).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}
