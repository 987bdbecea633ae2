package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

const pluginName = "belay:dbtx"

// plugin is what Install adds to a gorm.DB.
type plugin struct {
	known      catalogue.Cache
	sessions   dialect.Sessions
	keys       protected.Keys
	noSnapshot sync.Once
}

// Install prepares db for guarded transactions, and installs dbguard. It does not ask the
// database for anything. Installing twice is harmless.
func Install(db *gorm.DB) error {
	if err := dbguard.Install(db); err != nil {
		return err
	}
	if _, ok := db.Plugins[pluginName]; ok {
		return nil
	}
	if err := db.Use(new(plugin)); err != nil {
		return fmt.Errorf("install dbguard: %w", err)
	}
	return nil
}

func pluginOf(db *gorm.DB) (*plugin, error) {
	p, ok := db.Plugins[pluginName].(*plugin)
	if !ok {
		return nil, errors.New("dbguard: not installed on this db")
	}
	return p, nil
}

// Name implements gorm.Plugin.
func (*plugin) Name() string { return pluginName }

// Initialize implements gorm.Plugin.
func (p *plugin) Initialize(db *gorm.DB) error {
	cb := db.Callback()
	return errors.Join(
		cb.Create().Before("*").Register("belay:inside", inside),
		cb.Query().Before("*").Register("belay:inside", inside),
		cb.Update().Before("*").Register("belay:inside", inside),
		cb.Delete().Before("*").Register("belay:inside", inside),
		cb.Row().Before("*").Register("belay:inside", insideRow),
		cb.Raw().Before("*").Register("belay:inside", inside),

		cb.Create().Before("gorm:begin_transaction").Register("belay:join", join),
		cb.Update().Before("gorm:begin_transaction").Register("belay:join", join),
		cb.Delete().Before("gorm:begin_transaction").Register("belay:join", join),
		// Both are named: gorm puts what is only after something at the end, behind
		// the COMMIT.
		cb.Create().After("gorm:begin_transaction").Before("gorm:before_create").Register("belay:joined", joined),
		cb.Update().After("gorm:begin_transaction").Before("gorm:before_update").Register("belay:joined", joined),
		cb.Delete().After("gorm:begin_transaction").Before("gorm:before_delete").Register("belay:joined", joined),

		cb.Create().Before("gorm:create").Register("belay:before", beforeInsert),
		cb.Create().After("gorm:create").Before("gorm:save_after_associations").Register("belay:inserted", inserted),
		cb.Query().After("gorm:query").Before("gorm:preload").Register("belay:loaded", loaded),
		// dbguard's own is between noted and judged.
		cb.Update().Before("gorm:update").Register("belay:before", beforeWrite),
		cb.Update().After("gorm:update").Before("belay:written").Register("belay:noted", noted),
		cb.Update().After("belay:written").Before("gorm:save_after_associations").Register("belay:judged", judged),
		cb.Delete().Before("gorm:delete").Register("belay:before", beforeWrite),
		cb.Delete().After("gorm:delete").Before("belay:written").Register("belay:noted", noted),
		cb.Delete().After("belay:written").Before("gorm:after_delete").Register("belay:judged", judged),

		cb.Create().After("*").Register("belay:learn", learn),
		cb.Query().After("*").Register("belay:learn", learn),
		cb.Update().After("*").Register("belay:learn", learn),
		cb.Delete().After("*").Register("belay:learn", learn),
		cb.Row().After("*").Register("belay:learn", learn),
		cb.Raw().After("*").Register("belay:learn", learn),
		cb.Raw().After("*").Register("belay:isolation", p.isolation),
	)
}

// txSetting is where a statement keeps its guarded transaction: a plugin may put a
// connection of its own around the transaction's.
const txSetting = "belay:tx"

// txOf returns the guarded transaction on whose connection a statement runs, or
// nil. It does not rely on the context: many statements come with an outer one.
func txOf(stmt *gorm.Statement) *Tx {
	if c, ok := stmt.ConnPool.(*pinned.Conn); ok {
		return c.Watcher().(watcher).Tx
	}
	if _, ok := stmt.ConnPool.(*sql.DB); ok {
		return nil
	}
	t, _ := stmt.Settings.Load(txSetting)
	tx, _ := t.(*Tx)
	return tx
}

// escapes reports whether a statement would escape its guarded transaction: it carries
// the context but runs elsewhere, on the outer db for instance, or is to be prepared.
func escapes(stmt *gorm.Statement) bool {
	t := FromContext(stmt.Context)
	if p, ok := stmt.ConnPool.(*gorm.PreparedStmtTX); ok && t == nil {
		_, ours := p.Tx.(*pinned.Conn)
		return ours
	}
	return t != nil && t != txOf(stmt)
}

// inside refuses a statement that would escape, and notes the transaction of any other.
// It comes before all other callbacks.
func inside(db *gorm.DB) {
	if escapes(db.Statement) {
		err := dbguard.ErrOutside
		if _, ok := db.Statement.ConnPool.(*gorm.PreparedStmtTX); ok {
			err = fmt.Errorf("%w: its session has PrepareStmt, which only a db can have", err)
		}
		_ = db.AddError(err)
		return
	}
	if t := txOf(db.Statement); t != nil {
		db.Statement.Settings.Store(txSetting, t)
		t.journal.Begin()
	}
}

// configSetting is where a statement keeps its configuration between join and joined.
const configSetting = "belay:config"

// join keeps gorm from beginning a transaction around a statement of a guarded one. A
// plugin's connection would let it begin, and commit.
func join(db *gorm.DB) {
	if txOf(db.Statement) == nil {
		return
	}
	config := *db.Config
	config.SkipDefaultTransaction = true
	db.Statement.Settings.Store(configSetting, db.Config)
	db.Config = &config
}

// joined gives the statement its configuration back.
func joined(db *gorm.DB) {
	if config, ok := db.Statement.Settings.LoadAndDelete(configSetting); ok {
		db.Config = config.(*gorm.Config)
	}
}

// insideRow is inside for a query whose caller gets a *sql.Row and would follow
// a nil pointer to his error: he gets a row with the error in it.
func insideRow(db *gorm.DB) {
	inside(db)
	if rows, ok := db.Get("rows"); db.Error != nil && (!ok || rows != true) {
		db.Statement.Dest = pinned.RefusedRow(context.WithoutCancel(db.Statement.Context), db.Error)
	}
}

// learn passes the error of a statement to its transaction. The connection sees most
// errors itself, but not those that come with the rows. An error may also be what a
// hook has met in another database, or behind a savepoint.
func learn(db *gorm.DB) {
	t := txOf(db.Statement)
	if t == nil || db.Error == nil {
		return
	}
	t.conn.Settle()
	t.doom(db.Error)
	if dialect.IsChanged(db.Error) && !errors.Is(db.Error, dbguard.ErrPoisoned) { // or it was not sent
		t.judge.Doubt(db.Error)
	}
	db.Error = t.translate(db.Error)
}

// isolation forgets what is known of all sessions when SQL outside of a guarded
// transaction has set the isolation level of one.
func (p *plugin) isolation(db *gorm.DB) {
	sql := db.Statement.SQL.String()
	if db.Name() != "mysql" || !strings.Contains(strings.ToLower(sql), "isolation") {
		return
	}
	if slices.ContainsFunc((dialect.Dialect{Name: "mysql"}).Statements(sql), sqltext.Statement.SetsIsolation) {
		p.sessions.Forget()
	}
}
