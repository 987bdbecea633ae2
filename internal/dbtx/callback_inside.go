package dbtx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

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
		err := conflict.ErrOutside
		if _, ok := db.Statement.ConnPool.(*gorm.PreparedStmtTX); ok {
			err = fmt.Errorf("%w: its session has PrepareStmt, which only a db can have", err)
		}
		_ = db.AddError(err)
		return
	}
	if t := txOf(db.Statement); t != nil {
		db.Statement.Settings.Store(txSetting, t)
		t.journal.Begin()
		if db.DryRun {
			t.unsent.Add(1)
		}
		byProgram := db.Statement.SQL.Len() > 0 // by Exec or Raw: gorm has not written its own yet
		db.Statement.Context = pinned.Written(db.Statement.Context, byProgram)
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

// insideRow is inside for a query that returns a *sql.Row. gorm would return nil with an
// error, so the caller gets a row that has the error in it.
func insideRow(db *gorm.DB) {
	inside(db)
	if rows, ok := db.Get("rows"); db.Error != nil && (!ok || rows != true) {
		db.Statement.Dest = pinned.RefusedRow(context.WithoutCancel(db.Statement.Context), db.Error)
	}
}

// learn passes the error of a statement to its transaction. The connection sees most
// errors itself, but not those that come with the rows. The error may also be a hook's,
// from another database or after a savepoint. A write that has succeeded is no part of a statement
// that comes behind it, as that of a plugin may come right before gorm's own. A read says nothing of
// what is sent around it, as it may come between a write of gorm and its classification.
func learn(db *gorm.DB) {
	t := txOf(db.Statement)
	switch {
	case t == nil:
		return
	case db.Error == nil:
		if !isSelect(db.Statement.SQL.String()) {
			t.journal.Mark()
		}
		return
	}
	t.conn.Settle()
	t.doom(db.Error)
	if dialect.IsChanged(db.Error) && !errors.Is(db.Error, ErrPoisoned) { // or it was not sent
		t.judge.Doubt(db.Error)
	}
	db.Error = t.front.Translate(db.Error)
}

// isSelect reports whether SQL begins with SELECT.
func isSelect(sql string) bool {
	sql = strings.TrimLeft(sql, " \t\r\n(")
	return len(sql) >= 6 && strings.EqualFold(sql[:6], "SELECT")
}

// isolation forgets all sessions when SQL outside of a guarded transaction has set the
// isolation level or the sql_mode of one.
func (p *plugin) isolation(db *gorm.DB) {
	sql := db.Statement.SQL.String()
	lower := strings.ToLower(sql)
	if db.Name() != "mysql" || !strings.Contains(lower, "isolation") && !strings.Contains(lower, "sql_mode") {
		return
	}
	sets := func(st sqltext.Statement) bool { return st.SetsIsolation() || st.SetsMode() }
	if slices.ContainsFunc((dialect.Dialect{Name: "mysql"}).Statements(sql), sets) {
		p.forgetSessions()
	}
}
