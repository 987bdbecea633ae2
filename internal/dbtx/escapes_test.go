package dbtx_test

import (
	"testing"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestEscapesOfTheSession: whether a backslash escapes is a setting of a session. A COMMIT is
// found behind any string, whoever has set it, and a word in a string is none.
func TestEscapesOfTheSession(t *testing.T) {
	const (
		single = `SET @path = 'C:\'; COMMIT; SET @x = ''`
		double = `SELECT "C:\" FROM orders; COMMIT; SELECT ""`
		inside = `SET @text = 'a\'; COMMIT; '`
	)
	dsn := teststack.MySQL(t) + "&multiStatements=true"
	for mode, hidden := range map[string]string{"NO_BACKSLASH_ESCAPES": single, "ANSI_QUOTES": double, "ANSI": double} {
		t.Run(mode, func(t *testing.T) {
			set := testdb.OpenMySQL(t, dsn+"&sql_mode=%27"+mode+"%27")
			prepare(t, set)
			wantIs(t, begin(t, set, dbtx.Options{}).DB().Exec(hidden).Error, dbtx.ErrTxControl)

			db := testdb.OpenMySQL(t, dsn)
			prepare(t, db)
			pool, err := db.DB()
			wantNil(t, err)
			pool.SetMaxOpenConns(1)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.DB().Exec(inside).Error)
			wantNil(t, tx.DB().Exec("SET sql_mode = '"+mode+"'").Error)
			wantIs(t, tx.DB().Exec(hidden).Error, dbtx.ErrTxControl)
			tx.Rollback()
			tx = begin(t, db, dbtx.Options{}) // in the same session
			wantIs(t, tx.DB().Exec(hidden).Error, dbtx.ErrTxControl)
			tx.Rollback()
			wantNil(t, db.Exec("SET sql_mode = ''").Error) // outside of an operation
			wantNil(t, begin(t, db, dbtx.Options{}).DB().Exec(inside).Error)
		})
	}
}
