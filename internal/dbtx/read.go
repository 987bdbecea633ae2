package dbtx

import (
	"context"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// judging returns a context for the reads that judge.
func (t *Tx) judging() (context.Context, context.CancelFunc) {
	ctx, cancel := t.detached()
	return context.WithValue(ctx, judgingKey{}, true), cancel
}

// quiet returns a session for reads of dbguard's own. It has no logger, which would
// show the values in them.
func (t *Tx) quiet(ctx context.Context, db *gorm.DB) *gorm.DB {
	s := db.Session(&gorm.Session{NewDB: true, Context: ctx, SkipHooks: true, Logger: logger.Discard})
	s.Error = nil // that of a ROLLBACK TO which was refused: gorm leaves it in the db
	return s.Unscoped()
}

// readNow reads a row as it is committed now. It does not wait for a transaction that
// is writing the row; plain is what a plain read has found.
func (t *Tx) readNow(ctx context.Context, r *protected.Row, versions bool, plain protected.Reading) (protected.Reading, error) {
	lock := "FOR SHARE NOWAIT"
	if t.conn.session.MariaDB {
		lock = t.dialect.Share + " NOWAIT"
	}
	now, err := t.read(ctx, r, versions, lock)
	if dialect.IsSyntax(err) { // an old server
		now, err = t.read(ctx, r, versions, t.dialect.Share)
	}
	if dialect.IsChanged(err) { // since the snapshot, in which MariaDB locks nothing else then
		return protected.Reading{Changed: true}, nil
	}
	if dialect.IsLocked(err) {
		if plain.Found && !versions {
			return plain, nil // it is there, whatever else is being done to it
		}
		return protected.Reading{Locked: true}, nil
	}
	return now, err
}

// read reads a row by the columns that name it: its primary key, its name as the
// database spells it and, if versions is set, its version.
func (t *Tx) read(ctx context.Context, r *protected.Row, versions bool, lock string) (protected.Reading, error) {
	columns := append([]string(nil), r.Schema.PrimaryFieldDBNames...)
	fields := r.Schema.PrimaryFields
	version := models.FieldOf[dbguard.Version](r.Schema)
	if len(columns) == 0 {
		columns, fields = r.Columns(), r.Fields
	}
	if versions && version != nil {
		columns = append(columns, version.DBName)
	}
	for i, f := range r.Fields { // the index covers them
		if _, ok := sqlvalue.Text(r.Values[i]); ok && !slices.Contains(columns, f.DBName) {
			columns = append(columns, f.DBName)
		}
	}
	row, err := r.Load(t.quiet(ctx, t.db).Select(columns), r.Schema.ModelType, lock)
	if err != nil || !row.IsValid() {
		return protected.Reading{}, err
	}
	got := protected.Reading{Found: true, Texts: make(map[string]string)}
	for _, f := range fields {
		got.Key = append(got.Key, models.Value(ctx, f, row))
	}
	for _, f := range r.Fields {
		if text, ok := sqlvalue.Text(models.Value(ctx, f, row)); ok {
			got.Texts[f.DBName] = text
		}
	}
	if versions && version != nil {
		got.Version = models.In[dbguard.Version](ctx, version, row)
	}
	return got, nil
}
