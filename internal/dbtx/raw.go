package dbtx

import (
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// Ready reads what is known of the table to which a raw statement writes, if it may be that of a
// protected row: PostgreSQL reads nothing after an error.
func (t *Tx) Ready(statements []sqltext.Statement) {
	if len(statements) != 1 || !t.rows.Any() {
		return
	}
	if table, writes := statements[0].Writes(); writes && t.mayBeProtected(table) {
		t.reader.Facts(table)
		t.rows.Resolve(table)
	}
}

// mayBeProtected reports whether a table has the name of one with protected rows, in any schema.
func (t *Tx) mayBeProtected(table string) bool {
	return slices.ContainsFunc(t.rows.All(), func(r *protected.Row) bool {
		return strings.EqualFold(catalogue.BareName(r.Table), catalogue.BareName(table))
	})
}

// Judge judges a statement of raw SQL. The error of an INSERT that was refused because of a
// protected row becomes a *dbguard.ConflictError. Any other error is the driver's.
func (t *Tx) Judge(r *pinned.Raw) error {
	switch {
	case t.hasEnded():
		return r.Err
	case r.Err != nil && !dialect.FromServer(r.Err):
		t.Poison(r.Err) // nobody knows what was executed, or on which server the next one would be
		return r.Err
	case len(r.Statements) != 1 || !t.rows.Any():
		return r.Err
	case dialect.IsChanged(r.Err):
		t.judge.Doubt(r.Err)
		return r.Err
	case r.Err != nil && !dialect.IsDuplicate(r.Err) && !dialect.IsDeadlock(r.Err):
		return r.Err
	}
	w := t.describe(r)
	switch {
	case dialect.IsDuplicate(r.Err):
		return t.refusedRaw(w, r)
	case r.Err == nil && !r.Last():
		return nil // the journal has the text alone
	case w != nil && r.Err == nil:
		return t.insertedRaw(w, r.Affected)
	case w != nil:
		t.lookNow(t.rows.Among(w))
	}
	return r.Err
}

// insertedRaw notes a raw INSERT of protected rows that has succeeded. Of others the journal
// has the text alone.
func (t *Tx) insertedRaw(w *statement.Write, affected int64) error {
	rows := t.rows.Among(w)
	if len(rows) == 0 {
		return nil
	}
	w.Model = rows[0].Model
	for _, row := range w.Rows {
		w.Images = append(w.Images, statement.Image{Value: row.Value})
	}
	t.journal.MarkLast()
	return t.inserted(w, affected)
}

// several stands for the number of rows of an INSERT that can't be read: two of them may be equal.
const several = 2

// refusedRaw returns the error of a raw INSERT that was refused as a duplicate. w describes it,
// nil if it can't be read: the protected row is then the one that the database names, by the
// values of its index.
func (t *Tx) refusedRaw(w *statement.Write, r *pinned.Raw) error {
	if w == nil || len(t.rows.Among(w)) == 0 {
		row := t.refusedRow(r)
		if row == nil && w == nil {
			t.noteUnjudged(r)
			return r.Err
		}
		if row != nil {
			w = &statement.Write{Table: row.Table, Model: listed{}, Given: several, Values: several, Rows: []statement.Row{{Value: row.Value}}}
		}
	}
	c := t.judge.Duplicate(w, r.Err)
	if !c.Evidence.Protected {
		return r.Err
	}
	t.abortedBy(c)
	return &refusedError{c}
}

// refusedRow returns the protected row that the error of a duplicate names, nil if it names
// none for certain, or if an UPDATE, one of a routine or of a trigger, too, may have given another row
// its name: that is no repeat.
func (t *Tx) refusedRow(r *pinned.Raw) *protected.Row {
	if !r.Statements[0].OnlyInserts() {
		return nil
	}
	table, name, ok := t.conn.Session.RefusingIndex(r.Err)
	if !ok {
		return nil
	}
	written, _ := r.Statements[0].Writes()
	for _, row := range t.rows.All() {
		switch {
		case table != "" && table != catalogue.BareName(row.Table):
			continue
		case written != "" && !t.reader.SameTable(written, row.Table):
			continue // a table of another schema may have an index of that name
		case table == "" && written == "", t.reader.Facts(row.Table).Triggers:
			continue // the index may be that of another table, or a trigger may have updated a row
		}
		if t.namesRow(r.Err, row, name) {
			return row
		}
	}
	return nil
}

// namesRow reports whether the error of a duplicate names a row, by the index of that name.
func (t *Tx) namesRow(err error, row *protected.Row, name string) bool {
	indexes, _ := t.reader.Indexes(row.Table)
	i := slices.IndexFunc(indexes, func(i catalogue.Index) bool { return strings.EqualFold(i.Name, name) })
	if i < 0 {
		return false
	}
	index := indexes[i]
	if !catalogue.SameColumns(index.Columns, row.Columns) {
		return false
	}
	texts := make([]string, len(index.Columns))
	for i, column := range index.Columns {
		own := slices.IndexFunc(row.Columns, func(c string) bool { return strings.EqualFold(c, column) })
		text, ok := t.dialect.Shown(row.Values[own])
		if !ok {
			return false
		}
		texts[i] = text
	}
	return t.conn.Session.Refuses(err, index.Columns, texts)
}

// noteUnjudged logs once for each table that an INSERT can't be judged.
func (t *Tx) noteUnjudged(r *pinned.Raw) {
	table, _ := r.Statements[0].Writes()
	if table == "" || r.Statements[0].Updates() || len(t.rows.In(table)) == 0 {
		return
	}
	if _, known := t.database.unjudged.LoadOrStore(table, true); !known {
		t.options.Logger.Warn("an INSERT was refused that can't be judged, so it returns the driver's error: "+
			"write it with a list of columns and VALUES of arguments, or pass what it returns to guard.Inserted", "table", table)
	}
}

// refusedError is a conflict whose text ends with the driver's: libraries look for words in it.
type refusedError struct{ conflict *conflict.Error }

func (e *refusedError) Error() string { return e.conflict.Error() + ": " + e.conflict.Err.Error() }
func (e *refusedError) Unwrap() error { return e.conflict }
