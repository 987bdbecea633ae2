package dbtx_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// A node is a connector to a MariaDB, which reports by it that it is a node of Galera.
type node struct {
	driver.Connector
	marks *atomic.Int64 // counts Belay's savepoints; may be nil
}

func (n node) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := n.Connector.Connect(ctx)
	return &nodeConn{c, n.marks}, err
}

type nodeConn struct {
	driver.Conn
	marks *atomic.Int64
}

func (c *nodeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.marks != nil && query == "SAVEPOINT belay_first" {
		c.marks.Add(1)
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *nodeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	if err == nil && strings.HasPrefix(query, "SHOW SESSION VARIABLES") {
		rows = nodeRows{rows}
	}
	return rows, err
}

func (c *nodeConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *nodeConn) CheckNamedValue(v *driver.NamedValue) error {
	return c.Conn.(driver.NamedValueChecker).CheckNamedValue(v)
}

type nodeRows struct{ driver.Rows }

func (r nodeRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == nil && strings.EqualFold(fmt.Sprintf("%s", dest[0]), "wsrep_on") {
		dest[1] = []byte("ON")
	}
	return err
}

// connectorOf returns the connector of a DSN. Its statements are not prepared.
func connectorOf(t *testing.T, dsn string) driver.Connector {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	wantNil(t, err)
	config.InterpolateParams = true
	connector, err := mysql.NewConnector(config)
	wantNil(t, err)
	return connector
}

// openBy opens a pool of one connection by a connector to a MySQL or MariaDB.
func openBy(t *testing.T, connector driver.Connector) *gorm.DB {
	t.Helper()
	pool := sql.OpenDB(connector)
	t.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxOpenConns(1)
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	wantNil(t, err)
	prepare(t, db)
	return db
}

// mariadb returns the DSN of a MariaDB. Another server is no node of Galera, even in appearance.
func mariadb(t *testing.T) string {
	t.Helper()
	dsn := teststack.MySQL(t)
	err := testdb.OpenMySQL(t, dsn).Raw("SHOW VARIABLES LIKE 'wsrep_on'").Row().Scan(new(string), new(string))
	if errors.Is(err, sql.ErrNoRows) {
		t.Skip("the server knows no Galera")
	}
	wantNil(t, err)
	return dsn
}

// TestScatteredNode: see scattersNode.
func TestScatteredNode(t *testing.T) {
	dsn := mariadb(t)
	scattersNode(t, dsn, node{Connector: connectorOf(t, dsn)})
}

// TestGaleraScatteredStatements: see scattersNode.
func TestGaleraScatteredStatements(t *testing.T) {
	dsn := teststack.Galera(t)[0]
	scattersNode(t, dsn, connectorOf(t, dsn))
}

// scattersNode: a pooler that gives each statement to the next of its sessions commits what a transaction
// on Galera writes. That is not taken for a node that has undone the transaction, which may be made again.
func scattersNode(t *testing.T, dsn string, through driver.Connector) {
	direct := testdb.OpenMySQL(t, dsn)
	db := openBy(t, &testdb.Multiplexer{Sessions: slices.Repeat([]driver.Connector{through}, 5), Scatters: true})
	for range 3 {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		err := tx.Commit()
		if !errors.Is(err, dbtx.ErrTxControl) || dbtx.Retryable(err) || tx.Unseen() == nil {
			t.Errorf("committed with %v, unseen: %v", err, tx.Unseen())
		}
		wantNil(t, direct.Exec("DELETE FROM orders").Error)
	}
}

// TestNodeThatUndoes: a transaction on Galera that has lost its savepoint was rolled back if its session
// is the one that it began in. In another one nothing shows what became of it.
func TestNodeThatUndoes(t *testing.T) {
	dsn := mariadb(t)
	for name, tt := range map[string]struct {
		lose   func(s *swapper)
		undone bool
	}{
		"undone":                        {func(s *swapper) { s.undoAt("RELEASE") }, true},
		"in another session":            {func(s *swapper) { s.swapAt("RELEASE", nil) }, false},
		"in another session at a write": {func(s *swapper) { s.swapAt("('b'", nil) }, false},
	} {
		for _, pooled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, pooled: %t", name, pooled), func(t *testing.T) {
				s := &swapper{Connector: node{Connector: connectorOf(t, dsn)}}
				db := openBy(t, s)
				wantNil(t, db.Exec("DELETE FROM orders").Error)
				if pooled { // the session is another one than at the last transaction
					tx := begin(t, db, dbtx.Options{})
					tx.NotePooler()
					wantNil(t, tx.Commit())
					s.swapAt("SET autocommit", nil)
				}
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
				tt.lose(s)
				wantNil(t, tx.DB().Exec("INSERT INTO orders (no) VALUES ('b')").Error)
				err := tx.Commit()
				if dbtx.Retryable(err) != tt.undone || (tx.Unseen() == nil) != tt.undone || errors.Is(err, dbtx.ErrTxControl) == tt.undone {
					t.Errorf("committed with %v, unseen: %v", err, tx.Unseen())
				}
			})
		}
	}
}

// TestNodeThatUndoesMessages: a transaction on Galera whose messages a node has undone in silence is not
// committed with the writes behind them.
func TestNodeThatUndoesMessages(t *testing.T) {
	dsn := mariadb(t)
	s := &swapper{Connector: node{Connector: connectorOf(t, dsn)}}
	db := openBy(t, s)
	migrateMessages(t, db)
	tx := begin(t, db, dbtx.Options{})
	wantNil(t, tx.Send(bg, []message.Row{{MessageID: "a", Key: "k", Topic: "sold", Body: []byte("{}")}}))
	s.undoAt("FROM `stocks`")
	wantNil(t, tx.DB().Find(&[]Stock{}).Error)
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	if err := tx.Commit(); !dbtx.Retryable(err) {
		t.Errorf("committed with %v", err)
	}
	if n := count(t, db, &Order{}); n != 0 {
		t.Errorf("%d orders were committed without their message", n)
	}
}

func migrateMessages(t *testing.T, db *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	wantNil(t, err)
	d, _ := sqldb.Of("mysql")
	wantNil(t, message.Migrate(bg, sqldb.New(pool, d)))
}

// TestNodeMarksWrites: the savepoint that shows on Galera whether a transaction is still there comes before
// its first write or lock, whatever sends it.
func TestNodeMarksWrites(t *testing.T) {
	dsn := mariadb(t)
	for level, readsLock := range map[string]bool{"READ-COMMITTED": false, "REPEATABLE-READ": false, "SERIALIZABLE": true} {
		var marks atomic.Int64
		db := openBy(t, node{connectorOf(t, dsn+"&tx_isolation=%27"+level+"%27"), &marks})
		migrateMessages(t, db)
		for name, tt := range map[string]struct {
			send  func(tx *dbtx.Tx) error
			marks bool
		}{
			"read":  {func(tx *dbtx.Tx) error { return tx.DB().Find(&[]Order{}).Error }, readsLock},
			"lock":  {func(tx *dbtx.Tx) error { return tx.DB().Exec("SELECT no FROM orders FOR UPDATE").Error }, true},
			"write": {func(tx *dbtx.Tx) error { return tx.DB().Create(&Order{No: "a"}).Error }, true},
			"beside": {func(tx *dbtx.Tx) error {
				return tx.Beside(func(ctx context.Context, c dbtx.Execer, _ string) error {
					_, err := c.ExecContext(ctx, "INSERT INTO orders (no) VALUES ('b')")
					return err
				})
			}, true},
			"message": {func(tx *dbtx.Tx) error {
				return tx.Send(bg, []message.Row{{MessageID: "a", Key: "k", Topic: "sold", Body: []byte("{}")}})
			}, true},
		} {
			marks.Store(0)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tt.send(tx))
			if want := map[bool]int64{true: 1}[tt.marks]; marks.Load() != want {
				t.Errorf("%s, %s: %d savepoints", level, name, marks.Load())
			}
			tx.Rollback()
		}
	}
}
