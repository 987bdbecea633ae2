package dbtx_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestConfigurations: settings of the db change nothing.
func TestConfigurations(t *testing.T) {
	for name, config := range map[string]*gorm.Config{
		"translate errors":            {TranslateError: true},
		"prepare statements":          {PrepareStmt: true},
		"skip default transaction":    {SkipDefaultTransaction: true},
		"no nested transactions":      {DisableNestedTransaction: true},
		"query fields, global update": {QueryFields: true, AllowGlobalUpdate: true},
		"everything":                  {TranslateError: true, PrepareStmt: true, SkipDefaultTransaction: true, FullSaveAssociations: true},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
				db := open(config)
				prepare(t, db)
				behaves(t, db)
			})
		})
	}
	for name, params := range map[string]string{
		"found rows":         "&clientFoundRows=true",
		"interpolated":       "&interpolateParams=true",
		"several statements": "&multiStatements=true",
	} {
		t.Run(name, func(t *testing.T) {
			db := testdb.OpenMySQL(t, teststack.MySQL(t)+params)
			prepare(t, db)
			behaves(t, db)
		})
	}
}

// behaves runs what matters through a db: conflicts, versions, savepoints, and
// that nothing escapes.
func behaves(t *testing.T, db *gorm.DB) {
	t.Helper()
	wantNil(t, db.Create(&Order{No: "there"}).Error)
	wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
	loaded := stock(t, db, 1)
	old := loaded

	tx := begin(t, db, dbtx.Options{})
	wantNil(t, tx.Protect(&Order{No: "there"}))
	wantNil(t, tx.Protect(&Stock{ID: 1}))
	wantNil(t, tx.DB().Model(&loaded).Update("left", 4).Error)
	wantNil(t, tx.DB().Model(&loaded).Update("left", 4).Error) // the same value: the version changes
	err := tx.DB().Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&Order{No: "a"}).Error; err != nil {
			return err
		}
		return errUndo
	})
	if !db.DisableNestedTransaction {
		wantIs(t, err, errUndo)
	}
	if c := tx.Coverage(); !c.Covered || len(c.Uncovered) > 0 {
		t.Errorf("coverage is %+v", c)
	}
	wantIs(t, db.WithContext(tx.Context()).Create(&Order{No: "outside"}).Error, dbguard.ErrOutside)
	err = tx.DB().Create(&Order{No: "there"}).Error
	wantIs(t, err, gorm.ErrDuplicatedKey)
	tx.Rollback()
	var c *dbguard.ConflictError
	if !errors.As(err, &c) || !repeat(c) || c.Err == nil {
		t.Errorf("error is %v with evidence %+v, want a repeat with the driver's error in it", err, evidence(c))
	}
	if loaded.Version != 1 || count(t, db, &Order{}) != 1 {
		t.Errorf("in memory %+v, and not everything was rolled back", loaded)
	}

	wantNil(t, db.Model(&loaded).Update("left", 3).Error)
	wantStale(t, db.Model(&old).Update("left", 2).Error)
	wantStale(t, db.Delete(&old).Error)
	tx = begin(t, db, dbtx.Options{})
	wantNil(t, tx.Protect(&Stock{ID: 1}))
	wantStale(t, tx.DB().Save(&old).Error)
	if c := tx.Conflict(); !repeat(c) {
		t.Errorf("conflict is %+v with evidence %+v, want an old version", c, evidence(c))
	}
	wantNil(t, tx.DB().Model(&loaded).Update("left", 1).Error)
	wantNil(t, tx.Commit())
	if s := stock(t, db, 1); s.Left != 1 || s.Version != 3 || loaded.Version != 3 {
		t.Errorf("row is %+v, in memory %+v, want version 3", s, loaded)
	}
}

// TestResolver: reads of a guarded transaction, and those that judge, stay on
// the primary, whatever plugin spreads them. The replica here has no tables.
func TestResolver(t *testing.T) {
	for _, first := range []string{"resolver", "dbguard"} {
		t.Run(first+" first", func(t *testing.T) {
			dsn := teststack.MySQL(t)
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := testdb.OpenMySQL(t, k.Through(t, dsn))
			wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
			replica, err := sql.Open("mysql", teststack.MySQL(t))
			wantNil(t, err)
			defer replica.Close()
			if first == "dbguard" {
				wantNil(t, dbtx.Install(db))
			}
			wantNil(t, db.Use(dbresolver.Register(dbresolver.Config{
				Replicas: []gorm.Dialector{mysql.New(mysql.Config{Conn: replica, SkipInitializeWithVersion: true})},
			})))
			wantNil(t, dbtx.Install(db))
			if err := db.Find(&[]Order{}).Error; err == nil {
				t.Fatal("reads do not go to the replica")
			}

			wantNil(t, db.Create(&Order{No: "a"}).Error)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Order{No: "a"}))
			wantNil(t, tx.DB().Find(&[]Order{}).Error)
			wantNil(t, tx.DB().Clauses(dbresolver.Read).Find(&[]Order{}).Error)
			var n int
			wantNil(t, tx.DB().Raw("SELECT COUNT(*) FROM orders").Scan(&n).Error)
			wantIs(t, tx.DB().Create(&Order{No: "a"}).Error, gorm.ErrDuplicatedKey)
			if c := refused(tx); !repeat(c) {
				t.Errorf("conflict is %+v with evidence %+v, want a repeat", c, evidence(c))
			}
			wantIs(t, db.WithContext(tx.Context()).Find(&[]Order{}).Error, dbguard.ErrOutside)
			tx.Rollback()

			tx = begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Order{No: "b"}))
			wantNil(t, tx.DB().Create(&Order{No: "b"}).Error)
			k.After.Store(true)
			wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
			k.After.Store(false)
			if o, err := tx.Resolve(bg); o != dbtx.Committed || err != nil {
				t.Errorf("resolved as %v, %v, want committed", o, err)
			}
		})
	}
}

// TestNothingIsPooledOpen: whatever becomes of a transaction, the next user of
// the pool does not find it.
func TestNothingIsPooledOpen(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		pool, err := db.DB()
		wantNil(t, err)
		pool.SetMaxOpenConns(1)
		ends := map[string]func(tx *dbtx.Tx, cancel context.CancelFunc){
			"rollback":                  func(tx *dbtx.Tx, _ context.CancelFunc) { tx.Rollback() },
			"commit":                    func(tx *dbtx.Tx, _ context.CancelFunc) { _ = tx.Commit() },
			"cancelled, then commit":    func(tx *dbtx.Tx, cancel context.CancelFunc) { cancel(); _ = tx.Commit() },
			"cancelled, then rollback":  func(tx *dbtx.Tx, cancel context.CancelFunc) { cancel(); tx.Rollback() },
			"a failed statement":        func(tx *dbtx.Tx, _ context.CancelFunc) { tx.DB().Exec("x"); _ = tx.Commit() },
			"rows that are not closed":  func(tx *dbtx.Tx, _ context.CancelFunc) { _, _ = tx.DB().Raw("SELECT 1").Rows(); _ = tx.Commit() }, //nolint:rowserrcheck,sqlclosecheck // that is the case
			"a row that is not read":    func(tx *dbtx.Tx, _ context.CancelFunc) { tx.DB().Raw("SELECT 1").Row(); tx.Rollback() },
			"a statement cut short":     func(tx *dbtx.Tx, cancel context.CancelFunc) { cancel(); tx.DB().Exec("SELECT 1"); _ = tx.Commit() },
			"a rollback to nowhere":     func(tx *dbtx.Tx, _ context.CancelFunc) { tx.DB().RollbackTo("nowhere"); _ = tx.Commit() },
			"refused transaction words": func(tx *dbtx.Tx, _ context.CancelFunc) { tx.DB().Exec("BEGIN"); _ = tx.Commit() },
		}
		for name, end := range ends {
			ctx, cancel := context.WithCancel(bg)
			tx := beginCtx(ctx, t, db, dbtx.Options{})
			wantNil(t, tx.DB().Create(&Order{No: name}).Error)
			inTime(t, func() { end(tx, cancel) })
			cancel()
			if n := pool.Stats().InUse; n != 0 {
				t.Fatalf("%s: %d connections are in use", name, n)
			}
			// On the pool's only connection: an insert of its own is kept.
			wantNil(t, db.Exec("INSERT INTO orders (no, shop) VALUES (?, '')", "behind "+name).Error)
			wantNil(t, reconnect(pool))
			var n int64
			wantNil(t, db.Model(&Order{}).Where("no = ?", "behind "+name).Count(&n).Error)
			if n != 1 {
				t.Errorf("%s: the next insert was made inside the old transaction", name)
			}
		}
	})
}

// TestUnsentEndIsNotPooled: a transaction whose end was not sent in time is open still.
func TestUnsentEndIsNotPooled(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		pool, err := db.DB()
		wantNil(t, err)
		pool.SetMaxOpenConns(1)
		for name, end := range map[string]func(*dbtx.Tx){
			"commit":   func(tx *dbtx.Tx) { _ = tx.Commit() },
			"rollback": func(tx *dbtx.Tx) { tx.Rollback() },
		} {
			tx := begin(t, db, dbtx.Options{EndTimeout: time.Nanosecond})
			wantNil(t, tx.DB().Exec("INSERT INTO orders (no, shop) VALUES (?, '')", name).Error)
			end(tx)
			wantNil(t, db.Create(&Order{No: "behind " + name}).Error)
			wantNil(t, reconnect(pool))
			var n int64
			wantNil(t, db.Model(&Order{}).Count(&n).Error)
			if n != 1 {
				t.Errorf("%s: %d rows, want the next insert's alone", name, n)
			}
			wantNil(t, db.Exec("DELETE FROM orders").Error)
		}
	})
}

// reconnect closes the only connection of a pool. The server rolls back what was
// open on it.
func reconnect(pool *sql.DB) error {
	c, err := pool.Conn(bg)
	if err != nil {
		return err
	}
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Close()
	return pool.PingContext(bg)
}
