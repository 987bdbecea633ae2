package dbguard

import (
	"context"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// inserted turns a refused INSERT inside a guarded transaction into a
// *Conflict, and remembers the rows of one that succeeded.
func inserted(db *gorm.DB) {
	t := txOf(db.Statement)
	if t == nil || db.DryRun {
		return
	}
	if _, upsert := db.Statement.Clauses["ON CONFLICT"]; upsert {
		return
	}
	t.refresh(db.Statement)
	if db.Error == nil {
		t.owns(t.protectedAmong(db.Statement))
		return
	}
	if !isDuplicate(db.Error) {
		return
	}
	c := &Conflict{Kind: Duplicate, Table: db.Statement.Table, err: db.Error}
	t.judge(c, t.protectedAmong(db.Statement))
	db.Error = c
}

// updated turns a versioned UPDATE that matched no row into a *Conflict. After
// one that matched, the model in memory gets the row's new version.
func updated(db *gorm.DB) {
	expected, ok := db.Statement.Clauses[expectedClause].Expression.(expectedVersion)
	if !ok || db.DryRun {
		return
	}
	t := txOf(db.Statement)
	if db.Error == nil && db.RowsAffected > 0 {
		if t != nil {
			t.owns(t.protectedAmong(db.Statement))
		}
		bump(db, expected, t)
		return
	}
	if expected.version == 0 || db.Error != nil && !isChanged(db.Error) {
		return
	}
	c := &Conflict{
		Kind:     Stale,
		Table:    db.Statement.Table,
		Evidence: Evidence{Version: expected.version, Contradicts: db.Error != nil},
		err:      db.Error,
	}
	if t != nil {
		t.judge(c, t.protectedAmong(db.Statement))
	}
	db.Error = c
}

// bump sets the version in memory: in a guarded transaction, t, until a
// rollback.
func bump(db *gorm.DB, expected expectedVersion, t *Tx) {
	if expected.version == 0 || !expected.model.CanAddr() {
		return
	}
	ctx := context.WithoutCancel(db.Statement.Context)
	_ = db.AddError(expected.field.Set(ctx, expected.model, expected.version+1))
	if t != nil {
		t.OnRollback(func() { _ = expected.field.Set(ctx, expected.model, expected.version) })
	}
}

func (t *Tx) owns(rows []*protectedRow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range rows {
		r.own = true
	}
}

// judge collects the evidence for a conflict in a statement on the given
// protected rows, and keeps the conflict if it is the weightiest so far.
func (t *Tx) judge(c *Conflict, rows []*protectedRow) {
	if len(rows) == 0 {
		c.Evidence = Evidence{Version: c.Evidence.Version}
		return
	}
	if !c.Evidence.Contradicts { // after 1020 the transaction is gone: nothing can be read
		for _, r := range rows {
			if t.examine(c, r); c.Evidence.overlap() || c.Evidence.Unread {
				break
			}
		}
	}
	c.Evidence.Protected = true
	if c.Columns == nil {
		c.Columns = rows[0].columns()
	}
	if c.Evidence.overlap() {
		t.poisonWith(c)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conflict == nil || c.Evidence.weight() > t.conflict.Evidence.weight() {
		t.conflict = c
	}
}

// examine reads row r twice and notes what that says. A row that neither read
// finds is not the one that was in the way.
func (t *Tx) examine(c *Conflict, r *protectedRow) {
	plain, now, err := t.readTwice(c.Kind, r)
	if err != nil {
		c.Evidence.Unread = true
		return
	}
	if !plain.found && !now.found && !now.locked {
		return
	}
	e := &c.Evidence
	c.Columns = r.columns()
	e.Own = r.own && (e.Own || !e.Found) // of a batch all that were in the way
	e.Found = true
	e.FoundVersion = now.version
	e.Differ = now.locked || plain.found != now.found || !reflect.DeepEqual(plain.key, now.key) || plain.version != now.version
	e.Expected = c.Kind == Stale && now.version == e.Version
}

// reading is what one read of a row saw.
type reading struct {
	found, locked bool
	key           []any // primary key
	version       Version
}

// readTwice reads a row as the snapshot shows it, and as it is committed now.
// SQLite has one view of both.
func (t *Tx) readTwice(kind Kind, r *protectedRow) (plain, now reading, err error) {
	ctx, cancel := t.detached()
	defer cancel()
	ctx = context.WithValue(ctx, judgingKey{}, true)
	if plain, err = t.read(ctx, kind, r, ""); err != nil || t.dialect.share == "" {
		return plain, plain, err
	}
	lock := t.dialect.share
	if kind == Stale {
		lock = t.dialect.nowait
	}
	now, err = t.read(ctx, kind, r, lock)
	if mysqlNumber(err) == erParse { // MariaDB
		now, err = t.read(ctx, kind, r, t.dialect.share+" NOWAIT")
	}
	if isLocked(err) {
		return plain, reading{locked: true}, nil
	}
	return plain, now, err
}

// read reads the primary key of a row through its key columns, which a unique
// index covers; after an update its version, too.
func (t *Tx) read(ctx context.Context, kind Kind, r *protectedRow, lock string) (reading, error) {
	fields := r.schema.PrimaryFields
	columns := append([]string(nil), r.schema.PrimaryFieldDBNames...)
	version := versionOf(r.schema)
	if len(columns) == 0 {
		columns = r.columns()
		fields = r.fields
	}
	if kind == Stale && version != nil {
		columns = append(columns, version.DBName)
	}

	quiet := &gorm.Session{NewDB: true, Context: ctx, SkipHooks: true, Logger: logger.Discard}
	q := t.db.Session(quiet).Unscoped().Table(r.table).Select(columns)
	for i, f := range r.fields {
		q = q.Where(clause.Eq{Column: clause.Column{Name: f.DBName}, Value: r.values[i]})
	}
	if lock != "" {
		q = q.Clauses(lockingClause(lock))
	}
	rows := reflect.New(reflect.SliceOf(r.schema.ModelType))
	if err := q.Find(rows.Interface()).Error; err != nil {
		return reading{}, err
	}
	if rows.Elem().Len() == 0 {
		return reading{}, nil
	}

	row := rows.Elem().Index(0)
	got := reading{found: true}
	for _, f := range fields {
		v, _ := f.ValueOf(ctx, row)
		got.key = append(got.key, v)
	}
	if kind == Stale && version != nil {
		got.version = versionIn(ctx, version, row)
	}
	return got, nil
}

// lockingClause is the end of a SELECT, as the dialect spells it.
type lockingClause string

func (lockingClause) Name() string                   { return "FOR" }
func (l lockingClause) Build(b clause.Builder)       { _, _ = b.WriteString(string(l)) }
func (l lockingClause) MergeClause(c *clause.Clause) { c.Name, c.Expression = "", l }
