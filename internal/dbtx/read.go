package dbtx

import (
	"context"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// reading is what one read of a row saw.
type reading struct {
	found   bool
	changed bool  // since the snapshot: nothing more is known
	locked  bool  // by another transaction; nothing more is known
	key     []any // primary key
	version dbguard.Version
	texts   map[string]string // the row's name as the database spells it, by column
}

// changedTo reports whether the row has been written between the readings a and b. A
// version of 0 was not read, and an older one comes from a server that is behind.
func (a reading) changedTo(b reading) bool {
	switch {
	case b.changed, a.found != b.found:
		return true
	case !a.found:
		return false
	case len(a.key) == len(b.key) && !sqlvalue.SameKey(a.key, b.key):
		return true
	}
	return a.version != 0 && b.version > a.version
}

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
func (t *Tx) readNow(ctx context.Context, r *protectedRow, versions bool, plain reading) (reading, error) {
	lock := "FOR SHARE NOWAIT"
	if t.conn.session.MariaDB {
		lock = t.dialect.Share + " NOWAIT"
	}
	now, err := t.read(ctx, r, versions, lock)
	if dialect.IsSyntax(err) { // an old server
		now, err = t.read(ctx, r, versions, t.dialect.Share)
	}
	if dialect.IsChanged(err) { // since the snapshot, in which MariaDB locks nothing else then
		return reading{changed: true}, nil
	}
	if dialect.IsLocked(err) {
		if plain.found && !versions {
			return plain, nil // it is there, whatever else is being done to it
		}
		return reading{locked: true}, nil
	}
	return now, err
}

// read reads a row by the columns that name it: its primary key, its name as the
// database spells it and, if versions is set, its version.
func (t *Tx) read(ctx context.Context, r *protectedRow, versions bool, lock string) (reading, error) {
	columns := append([]string(nil), r.schema.PrimaryFieldDBNames...)
	fields := r.schema.PrimaryFields
	version := models.FieldOf[dbguard.Version](r.schema)
	if len(columns) == 0 {
		columns, fields = r.columns(), r.fields
	}
	if versions && version != nil {
		columns = append(columns, version.DBName)
	}
	for i, f := range r.fields { // the index covers them
		if _, ok := sqlvalue.Text(r.values[i]); ok && !slices.Contains(columns, f.DBName) {
			columns = append(columns, f.DBName)
		}
	}
	row, err := r.load(t.quiet(ctx, t.db).Select(columns), r.schema.ModelType, lock)
	if err != nil || !row.IsValid() {
		return reading{}, err
	}
	got := reading{found: true, texts: make(map[string]string)}
	for _, f := range fields {
		got.key = append(got.key, models.Value(ctx, f, row))
	}
	for _, f := range r.fields {
		if text, ok := sqlvalue.Text(models.Value(ctx, f, row)); ok {
			got.texts[f.DBName] = text
		}
	}
	if versions && version != nil {
		got.version = models.In[dbguard.Version](ctx, version, row)
	}
	return got, nil
}

// lockingClause is the end of a SELECT, as the dialect spells it.
type lockingClause string

func (lockingClause) Name() string                   { return "FOR" }
func (l lockingClause) Build(b clause.Builder)       { _, _ = b.WriteString(string(l)) }
func (l lockingClause) MergeClause(c *clause.Clause) { c.Name, c.Expression = "", l }
