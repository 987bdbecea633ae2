package dbtx_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// A splitter is a proxy with the usual rules of ProxySQL: a SELECT outside of a transaction is sent to
// a replica unless it ends in FOR UPDATE, and everything else to the writer.
type splitter struct {
	driver.Connector // to the writer
	replica          driver.Connector
}

func (s *splitter) Connect(ctx context.Context) (driver.Conn, error) {
	w, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.replica.Connect(ctx)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &split{Conn: w, replica: r}, nil
}

type split struct {
	driver.Conn
	replica driver.Conn
	inside  bool // a transaction
}

// route returns the connection for a statement.
func (s *split) route(query string) driver.Conn {
	switch query = strings.ToUpper(strings.TrimSpace(query)); {
	case query == "BEGIN", strings.HasPrefix(query, "START TRANSACTION"):
		s.inside = true
	case query == "COMMIT", query == "ROLLBACK":
		s.inside = false
	case !s.inside && strings.HasPrefix(query, "SELECT") && !strings.HasSuffix(query, "FOR UPDATE"):
		return s.replica
	}
	return s.Conn
}

func (s *split) Close() error { return errors.Join(s.Conn.Close(), s.replica.Close()) }

func (s *split) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return s.route(query).(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (s *split) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return s.route(query).(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (s *split) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return s.route(query).(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (s *split) CheckNamedValue(v *driver.NamedValue) error {
	return s.Conn.(driver.NamedValueChecker).CheckNamedValue(v)
}

// behindASplitter returns a pool by way of a splitter whose replica has the tables and no rows, and
// the writer past it.
func behindASplitter(t *testing.T) (db, direct *gorm.DB, k *testdb.Link) {
	t.Helper()
	connector := func(dsn string) driver.Connector {
		config, err := mysql.ParseDSN(dsn)
		wantNil(t, err)
		config.InterpolateParams = true // so that no statement is prepared
		c, err := mysql.NewConnector(config)
		wantNil(t, err)
		return c
	}
	writer, replica := teststack.MySQL(t), teststack.MySQL(t)
	direct = testdb.OpenMySQL(t, writer)
	prepare(t, direct)
	prepare(t, testdb.OpenMySQL(t, replica))
	k = testdb.NewLink(t, testdb.AddrOf(t, writer))
	pool := sql.OpenDB(&splitter{connector(k.Through(t, writer)), connector(replica)})
	t.Cleanup(func() { _ = pool.Close() })
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{Conn: pool, ServerVersion: direct.Config.Dialector.(*gormmysql.Dialector).ServerVersion}), &gorm.Config{Logger: logger.Discard})
	wantNil(t, err)
	wantNil(t, dbtx.Install(db))
	return db, direct, k
}

// TestResolveBehindASplitter: a replica that is behind shows neither that a COMMIT took effect nor
// that it did not.
func TestResolveBehindASplitter(t *testing.T) {
	db, direct, k := behindASplitter(t)
	wantNil(t, direct.Create(&Stock{ID: 1, Left: 9}).Error)
	resolveEach(t, db, direct, k)
}

// resolveEach expects the outcome of lost COMMITs to be told. It leaves one order.
func resolveEach(t *testing.T, db, direct *gorm.DB, k *testdb.Link) {
	t.Helper()
	for _, tt := range []struct {
		name    string
		write   func(tx *dbtx.Tx) error
		arrives bool
		want    dbtx.Outcome
	}{
		{"an insert that arrives", func(tx *dbtx.Tx) error { return tx.DB().Create(&Order{No: "a"}).Error }, true, dbtx.Committed},
		{"an insert that is lost", func(tx *dbtx.Tx) error { return tx.DB().Create(&Order{No: "b"}).Error }, false, dbtx.NotCommitted},
		{"an update that is lost", func(tx *dbtx.Tx) error {
			return tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 4).Error
		}, false, dbtx.NotCommitted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tx := begin(t, db, dbtx.Options{EndTimeout: time.Minute})
			wantNil(t, tx.Protect(&Order{No: map[bool]string{true: "a", false: "b"}[tt.arrives]}))
			wantNil(t, tx.Protect(&Stock{ID: 1}))
			wantNil(t, tt.write(tx))
			lose(t, tx, k, tt.arrives)
			if o, err := tx.Resolve(bg); o != tt.want || err != nil {
				t.Errorf("resolved as %v, %v, want %v", o, err, tt.want)
			}
		})
	}
	if n := count(t, direct, &Order{}); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}
