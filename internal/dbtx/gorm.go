package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/gormfront"
)

var (
	_ front   = (*gormfront.Front)(nil)
	_ gorm.Tx = (*pinned.Conn)(nil)
)

// Begin starts a guarded transaction on a connection of db's pool. The caller
// ends it with Commit or Rollback. Install must have been called on db.
func Begin(ctx context.Context, db *gorm.DB, o Options) (*Tx, error) {
	p, ok := db.Plugins[pluginName].(*plugin)
	if !ok {
		return nil, errors.New("dbguard: not installed on this db")
	}
	d, ok := dialect.Of(db.Name()) // a second db that was opened with the same gorm.Config may have changed it
	if !ok {
		return nil, fmt.Errorf("dbguard: no support for the database %q", db.Name())
	}
	pool, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("begin transaction: %w", err)
	}
	t, err := begin(ctx, pool, d, p.of(pool), o)
	if err != nil {
		return nil, err
	}
	t.use(gormfront.New(t.session(db), db.TranslateError))
	return t, nil
}

// session returns a gorm session on the pinned connection. Without a context of
// its own a session shares its Statement, and setting the connection would
// change the user's db.
func (t *Tx) session(db *gorm.DB) *gorm.DB {
	s := db.Session(&gorm.Session{NewDB: true, Context: t.ctx})
	s.Statement.ConnPool = t.conn
	s.TranslateError = false // a translated error has lost its cause: learn translates it
	return s
}

// DB returns the session whose statements run in the transaction.
func (t *Tx) DB() *gorm.DB { return t.front.(*gormfront.Front).DB() }

// txSetting is the key under which a statement keeps its guarded transaction: a plugin
// may wrap the transaction's connection.
const txSetting = "belay:tx"

// txOf returns the guarded transaction on whose connection a statement runs, or
// nil. It does not rely on the context: many statements come with an outer one.
func txOf(stmt *gorm.Statement) *Tx {
	if c, ok := stmt.ConnPool.(*pinned.Conn); ok {
		return c.Watcher.(*Tx)
	}
	if _, ok := stmt.ConnPool.(*sql.DB); ok {
		return nil
	}
	t, _ := stmt.Settings.Load(txSetting)
	tx, _ := t.(*Tx)
	return tx
}
