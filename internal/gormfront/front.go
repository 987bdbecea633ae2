package gormfront

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// A Front is GORM, on the connection of one transaction.
type Front struct {
	db         *gorm.DB
	translates bool // the db has gorm's option TranslateError
}

// New returns the front of db, a session on the connection.
func New(db *gorm.DB, translates bool) *Front { return &Front{db, translates} }

// DB returns the session whose statements run in the transaction.
func (f *Front) DB() *gorm.DB { return f.db }

// On implements protected.Loader.
func (f *Front) On(c *sql.Conn) protected.Loader {
	db := f.db.Session(&gorm.Session{NewDB: true, Context: f.db.Statement.Context})
	db.Statement.ConnPool = primary{c}
	return &Front{db: db}
}

// session returns a session for reads. It has no logger, which would show the values in them.
func (f *Front) session(ctx context.Context) *gorm.DB {
	s := f.db.Session(&gorm.Session{NewDB: true, Context: ctx, SkipHooks: true, Logger: logger.Discard})
	s.Error = nil // that of a ROLLBACK TO which was refused: gorm leaves it in the db
	return s.Unscoped()
}

// primary is a connection of the transaction's own pool. Because it could commit,
// plugins that spread reads over replicas take it for a transaction and leave it
// alone.
type primary struct{ *sql.Conn }

func (primary) Commit() error   { return sql.ErrTxDone }
func (primary) Rollback() error { return sql.ErrTxDone }

// Translate makes err match gorm's error, too, if the db was opened with gorm's option
// TranslateError.
func (f *Front) Translate(err error) error {
	translator, ok := f.db.Dialector.(gorm.ErrorTranslator)
	if !f.translates || !ok || !dialect.FromServer(err) {
		return err
	}
	translated := translator.Translate(err)
	if errors.Is(err, translated) {
		return err
	}
	return translatedError{err, translated}
}

// translatedError is an error of the database with gorm's translation. It keeps the
// database's text.
type translatedError struct{ err, translated error }

func (e translatedError) Error() string   { return e.err.Error() }
func (e translatedError) Unwrap() []error { return []error{e.err, e.translated} }
