package wild

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/teststack"
)

// split is a proxy that sends what is read outside of a transaction to a replica.
type split struct{ primary, replica driver.Connector }

func (s split) Driver() driver.Driver { return s.primary.Driver() }

func (s split) Connect(ctx context.Context) (driver.Conn, error) {
	p, err := s.primary.Connect(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.replica.Connect(ctx)
	return &splitConn{Conn: p, replica: r}, err
}

type splitConn struct {
	driver.Conn
	replica driver.Conn
	inTx    bool
}

func (c *splitConn) Close() error { return errors.Join(c.Conn.Close(), c.replica.Close()) }

func (c *splitConn) ExecContext(ctx context.Context, q string, a []driver.NamedValue) (driver.Result, error) {
	switch strings.Fields(q)[0] {
	case "BEGIN":
		c.inTx = true
	case "ROLLBACK", "COMMIT":
		c.inTx = false
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, a)
}

func (c *splitConn) QueryContext(ctx context.Context, q string, a []driver.NamedValue) (driver.Rows, error) {
	if !c.inTx && strings.Contains(q, `FROM "accounts"`) {
		return c.replica.(driver.QueryerContext).QueryContext(ctx, q, a)
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, a)
}

func (c *splitConn) CheckNamedValue(v *driver.NamedValue) error {
	return c.Conn.(driver.NamedValueChecker).CheckNamedValue(v)
}

func (c *splitConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

// TestRepeatThroughAProxy: the replica, to which reads outside of a transaction go, has
// not got the row yet.
func TestRepeatThroughAProxy(t *testing.T) {
	open := func(c driver.Connector) *gorm.DB {
		pool := sql.OpenDB(c)
		t.Cleanup(func() { _ = pool.Close() })
		db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}))
		if err == nil {
			err = db.AutoMigrate(&Account{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	connector := func() driver.Connector {
		config, err := pgx.ParseConfig(teststack.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		return stdlib.GetConnector(*config)
	}
	primary, replica := connector(), connector()
	open(primary)
	open(replica)
	e := &env{t: t, db: open(split{primary, replica})}
	e.Guard = guardtest.New(t, e.db)
	insert := func() guard.Op { return guard.Insert(&Account{Email: "a"}).Run }
	e.want(e.Do(bg, "a", insert()), "done", 0)
	e.want(e.Do(bg, "a", insert()), "duplicate", 0)
}
