package dbguard

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// judge collects the evidence for a conflict in a statement on the given
// protected rows, and keeps the conflict if it is the weightiest so far.
func (t *Tx) judge(c *Conflict, rows []*protectedRow) {
	if len(rows) == 0 {
		c.Evidence = Evidence{Version: c.Evidence.Version}
		return
	}
	switch {
	case c.Evidence.Contradicts: // the transaction is gone: nothing can be read
	case t.dialect.aborts && c.Kind == Duplicate:
		t.compareBefore(c, rows)
	default:
		if err := t.examine(c, rows); err != nil {
			c.Evidence.Unread = true
		}
	}
	c.Evidence.Protected = true
	if c.Columns == nil {
		c.Columns = rows[0].columns()
	}
	t.keep(c)
}

// keep keeps the weightiest conflict.
func (t *Tx) keep(c *Conflict) {
	if c.Evidence.overlap() {
		t.poisonWith(c)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Key, c.Evidence.Several = t.key, t.protected.several
	if t.conflict == nil || c.Evidence.weight() > t.conflict.Evidence.weight() {
		t.conflict = c
	}
}

// examine reads the rows of a conflict twice and notes what that says: first
// plainly, all of them, and then as they are committed now. After a duplicate
// among several it asks the second time for those only that the first read did
// not find.
func (t *Tx) examine(c *Conflict, rows []*protectedRow) error {
	ctx, cancel := t.judging()
	defer cancel()
	plain := make([]reading, len(rows))
	for i, r := range rows {
		var err error
		if plain[i], err = t.read(ctx, r, c.Kind == Stale, ""); err != nil {
			return err
		}
	}
	for i, r := range rows {
		now := plain[i]
		if t.dialect.share != "" && (c.Kind == Stale || len(rows) == 1 || !now.found) {
			var err error
			if now, err = t.readNow(ctx, r, c.Kind == Stale, plain[i]); err != nil {
				return err
			}
		}
		if t.weigh(c, r, plain[i], now); c.Evidence.overlap() {
			return nil
		}
	}
	return nil
}

// weigh notes what two reads of a row say. A row that neither finds is not the
// one that was in the way, unless it had been seen before.
func (t *Tx) weigh(c *Conflict, r *protectedRow, plain, now reading) {
	own := t.wrote(r, c.Kind)
	first, seen := t.memory.recall(r)
	contradicts := seen && !own && !now.locked && first.contradicts(now)
	if !plain.found && !now.found && !now.locked && !contradicts {
		return
	}
	if now.otherwise && !plain.found {
		return // a row of another spelling, and so of another key, that only a collation takes for this one
	}
	e := &c.Evidence
	c.Columns = r.columns()
	e.Own = own && (e.Own || !e.Found) // of a batch all that were in the way
	e.Found = plain.found || now.found || now.locked
	e.FoundVersion = now.version
	e.Differ = now.locked || plain.contradicts(now)
	e.Contradicts = contradicts
	e.Expected = c.Kind == Stale && now.found && now.version == e.Version
}

// judging returns a context for the reads that judge.
func (t *Tx) judging() (context.Context, context.CancelFunc) {
	ctx, cancel := t.detached()
	return context.WithValue(ctx, judgingKey{}, true), cancel
}

// readNow reads a row as it is committed now. It does not wait for another
// transaction that is writing it.
func (t *Tx) readNow(ctx context.Context, r *protectedRow, versions bool, plain reading) (reading, error) {
	lock := "FOR SHARE NOWAIT"
	if t.conn.session.mariaDB {
		lock = t.dialect.share + " NOWAIT"
	}
	now, err := t.read(ctx, r, versions, lock)
	if mysqlNumber(err) == erParse { // an old server
		now, err = t.read(ctx, r, versions, t.dialect.share)
	}
	if isLocked(err) {
		if plain.found && !versions {
			return plain, nil // it is there, whatever else is being done to it
		}
		return reading{locked: true}, nil
	}
	return now, err
}

// read reads the primary key of a row through its key columns, which a unique
// index covers, and its version if that is asked for.
func (t *Tx) read(ctx context.Context, r *protectedRow, versions bool, lock string) (reading, error) {
	columns := append([]string(nil), r.schema.PrimaryFieldDBNames...)
	fields := r.schema.PrimaryFields
	version := versionOf(r.schema)
	if len(columns) == 0 {
		columns, fields = r.columns(), r.fields
	}
	if versions && version != nil {
		columns = append(columns, version.DBName)
	}
	for i, f := range r.fields { // the index has them, too
		if isText(r.values[i]) && !slices.Contains(columns, f.DBName) {
			columns = append(columns, f.DBName)
		}
	}
	row, err := r.load(t.quiet(ctx, t.db).Select(columns), r.schema.ModelType, lock)
	if err != nil || !row.IsValid() {
		return reading{}, err
	}

	got := reading{found: true, otherwise: t.spelledOtherwise(ctx, r, row)}
	for _, f := range fields {
		got.key = append(got.key, fieldOf(ctx, f, row))
	}
	if versions && version != nil {
		got.version = versionIn(ctx, version, row)
	}
	return got, nil
}

// quiet returns a session for reads that are not the user's: a log would show
// the values in them.
func (t *Tx) quiet(ctx context.Context, db *gorm.DB) *gorm.DB {
	return db.Session(&gorm.Session{NewDB: true, Context: ctx, SkipHooks: true, Logger: logger.Discard}).Unscoped()
}

// reading is what one read of a row saw.
type reading struct {
	found, locked bool
	otherwise     bool  // the row's name is spelled in another way
	key           []any // primary key
	version       Version
}

// spelledOtherwise reports whether a text that names the row is another one in the
// database: its collation takes the two for the same, but they make different keys.
func (t *Tx) spelledOtherwise(ctx context.Context, r *protectedRow, row reflect.Value) bool {
	for i, f := range r.fields {
		now, was := indirect(fieldOf(ctx, f, row)), indirect(r.values[i])
		if isText(now) && isText(was) && reflect.ValueOf(now).String() != reflect.ValueOf(was).String() {
			return t.keepsTexts(ctx, r.table, f.DBName)
		}
	}
	return false
}

// keepsTexts reports whether a column gives texts back as it was given them, unlike
// one of type uuid or char.
func (t *Tx) keepsTexts(ctx context.Context, table, column string) bool {
	known, ok := t.plugin.texts.Load(table)
	if !ok {
		found, err := collationsOf(t.quiet(ctx, t.db), table)
		if err != nil {
			return false
		}
		texts := make(map[string]bool)
		for _, l := range found {
			texts[l.Col] = !l.Padded && !strings.HasPrefix(l.Kind, "character(")
		}
		known, _ = t.plugin.texts.LoadOrStore(table, texts)
	}
	return known.(map[string]bool)[strings.ToLower(column)]
}

func isText(v any) bool { return reflect.ValueOf(indirect(v)).Kind() == reflect.String }

// lockingClause is the end of a SELECT, as the dialect spells it.
type lockingClause string

func (lockingClause) Name() string                   { return "FOR" }
func (l lockingClause) Build(b clause.Builder)       { _, _ = b.WriteString(string(l)) }
func (l lockingClause) MergeClause(c *clause.Clause) { c.Name, c.Expression = "", l }
