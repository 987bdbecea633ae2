package dbtx_test

import (
	"context"
	"database/sql"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// lossy loses what comes next on a connection: MySQL Router speaks TLS, in which a link sees
// no COMMIT.
type lossy struct {
	net.Conn
	lose *atomic.Pointer[loss]
	gone bool
}

type loss struct{ arrives bool }

func (c *lossy) Write(p []byte) (int, error) {
	l := c.lose.Swap(nil)
	if l == nil {
		return c.Conn.Write(p)
	}
	c.gone = true
	if !l.arrives {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *lossy) Read(p []byte) (int, error) {
	if c.gone {
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

// behindRouter returns a pool with one connection behind a router, and how to lose what is
// sent next on it.
func behindRouter(t *testing.T, dsn string) (*gorm.DB, *atomic.Pointer[loss]) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	wantNil(t, err)
	lose := new(atomic.Pointer[loss])
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &lossy{Conn: c, lose: lose}, err
	}
	db := testdb.OpenMySQLConfig(t, config)
	wantNil(t, dbtx.Install(db))
	pool, err := db.DB()
	wantNil(t, err)
	pool.SetMaxOpenConns(1)
	return db, lose
}

// TestRouterStrangerIsLeftAlone: the session that a connection had at first is another
// client's, whose transaction goes on. The outcome is told all the same.
func TestRouterStrangerIsLeftAlone(t *testing.T) {
	plain, shared := teststack.Router(t)
	direct := testdb.OpenMySQL(t, plain)
	prepare(t, direct)
	for _, tt := range []struct {
		no   string
		loss loss
		want dbtx.Outcome
	}{{"a", loss{true}, dbtx.Committed}, {"b", loss{false}, dbtx.NotCommitted}} {
		db, lose := behindRouter(t, shared)
		first := begin(t, db, dbtx.Options{})
		var session int64
		wantNil(t, first.DB().Raw("SELECT CONNECTION_ID()").Scan(&session).Error)
		first.Rollback()
		stranger := strangerIn(t, shared, session)

		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: tt.no}))
		wantNil(t, tx.DB().Create(&Order{No: tt.no}).Error)
		lose.Store(&tt.loss)
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		if o, err := tx.Resolve(bg); o != tt.want || err != nil {
			t.Errorf("resolved as %v, %v, want %v", o, err, tt.want)
		}
		if _, err := stranger.Exec("SELECT 1"); err != nil {
			t.Errorf("another client's session was ended: %v", err)
		}
		wantNil(t, stranger.Rollback())
	}
}

// strangerIn returns a transaction of another client in that session.
func strangerIn(t *testing.T, dsn string, session int64) *sql.Tx {
	t.Helper()
	other, err := testdb.OpenMySQL(t, dsn).DB()
	wantNil(t, err)
	for range 20 {
		tx, err := other.Begin()
		wantNil(t, err)
		var got int64
		wantNil(t, tx.QueryRow("SELECT CONNECTION_ID()").Scan(&got))
		if got == session {
			return tx
		}
		t.Cleanup(func() { _ = tx.Rollback() })
	}
	t.Fatal("no other client has got the session")
	return nil
}
