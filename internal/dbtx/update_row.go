package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/rowversion"
	"github.com/belaygo/belay/internal/tablerow"
)

// UpdateRow updates a row that is named by its table, and raises its version, if it has the
// version still. set is what comes behind SET, with args for its arguments. An error of a row
// that has another version, or none, is a [*conflict.Error].
func (t *Tx) UpdateRow(ctx context.Context, row *tablerow.Row, version rowversion.Version, set string, args []any) error {
	w, err := t.updating(row, version)
	if err != nil {
		return err
	}
	if w.Model.Stamp() != "" {
		w.Stamp = rowversion.RandomStamp()
	}
	if err := t.before(w, (*Tx).follow); err != nil {
		return err
	}
	t.journal.Mark()
	query, args := t.updateOf(w, row, set, args)
	res, err := t.conn.ExecContext(ctx, query, args...)
	var n int64
	if err == nil {
		n, err = res.RowsAffected()
	}
	t.noteWritten(w, n, err)
	switch {
	case dialect.IsChanged(err) && !errors.Is(err, ErrPoisoned):
		t.judge.Doubt(err)
		return err
	case err != nil:
		return err
	case n == 0:
		return t.stale(w)
	}
	return t.checkLimit(w)
}

// Changed returns the conflict of an UPDATE that has written n rows, or nil if that is the one
// row. err is the UPDATE's own.
func (t *Tx) Changed(row *tablerow.Row, version rowversion.Version, n int64, err error) error {
	n, err = counted(n, err)
	if err != nil {
		return err
	}
	w, failed := t.updating(row, version)
	switch {
	case failed != nil:
		return failed
	case n == 1:
		return nil
	case n > 1:
		err := fmt.Errorf("%w: %d rows of %s were written for one", conflict.ErrUnprotectable, n, row.Table)
		t.Poison(err)
		return err
	}
	t.journal.Mark() // the UPDATE itself may have written by a trigger
	return t.stale(w)
}

// Inserted returns the conflict of an INSERT that was to leave out a row that is there, and has
// inserted n rows, or nil if that is the one row. err is the INSERT's own.
func (t *Tx) Inserted(row *tablerow.Row, n int64, err error) error {
	n, err = counted(n, err)
	if err != nil {
		return err
	}
	if t.journal.ReturnsFound(row.Table) {
		err := fmt.Errorf("%w: an INSERT into %s returns a row that is there, too, as gorm's DoNothing does on MariaDB: use INSERT IGNORE",
			conflict.ErrUnprotectable, row.Table)
		t.Poison(err)
		return err
	}
	r, failed := t.row(row)
	if failed != nil || n > 0 {
		return failed
	}
	return t.judge.Duplicate(&statement.Write{
		Table: row.Table, Model: listed{}, Given: 1, Values: 1, Rows: []statement.Row{{Value: r.Value}},
	}, nil)
}

// counted returns how many rows a statement has written. sql.ErrNoRows counts as none.
func counted(n int64, err error) (int64, error) {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err == nil && n < 0:
		return 0, fmt.Errorf("dbguard: %d rows were written: the driver does not count them", n)
	}
	return n, err
}

// row returns a row that is named by its table, whose columns are those of a unique index.
func (t *Tx) row(row *tablerow.Row) (*protected.Row, error) {
	m, err := t.parse(row)
	if err != nil {
		return nil, err
	}
	indexes, err := t.reader.Indexes(row.Table)
	if err != nil {
		return nil, err
	}
	if !catalogue.IsUnique(indexes, row.Columns) {
		return nil, fmt.Errorf("%w: no unique index of %s has just the columns %s%s",
			conflict.ErrUnprotectable, row.Table, catalogue.Listing(row.Columns), catalogue.Unusable(indexes))
	}
	return m.Row(row.Columns, protected.Row{}), nil
}

// updating describes an UPDATE of a row that has a version.
func (t *Tx) updating(row *tablerow.Row, version rowversion.Version) (*statement.Write, error) {
	r, err := t.row(row)
	switch {
	case err != nil:
		return nil, err
	case r.Model.Version() == "":
		return nil, fmt.Errorf("%w: %s has no column %s of integers", rowversion.ErrVersion, row.Table, row.VersionColumn())
	case version < 1:
		return nil, fmt.Errorf("%w: a row of %s of version %d, the first one is 1", rowversion.ErrVersion, row.Table, version)
	}
	return &statement.Write{
		Table: row.Table, Model: r.Model, Rows: []statement.Row{{Value: r.Value}}, Steps: 1,
		Expected: []statement.Expected{{Value: r.Value, Key: r.Values, Version: version}},
	}, nil
}

// stale returns the conflict of an UPDATE that matched no row.
func (t *Tx) stale(w *statement.Write) error {
	c := &conflict.Error{Kind: conflict.Stale, Table: w.Table}
	c.Evidence.Version = w.Expected[0].Version
	t.judge.Stale(w, c)
	return c
}

// updateOf returns the text of an UPDATE of a row, and its arguments. Its own part, set, has args,
// and may end with a comment that the end of a line ends.
func (t *Tx) updateOf(w *statement.Write, row *tablerow.Row, set string, args []any) (string, []any) {
	var b strings.Builder
	args = slices.Clone(args)
	bind := func(v any) string {
		args = append(args, v)
		return t.dialect.Mark(len(args))
	}
	version := t.dialect.Quote(w.Model.Version())
	fmt.Fprintf(&b, "UPDATE %s SET %s\n, %s = %s + 1", t.dialect.Quote(row.Table), set, version, version)
	if w.Stamp != 0 {
		fmt.Fprintf(&b, ", %s = %s", t.dialect.Quote(w.Model.Stamp()), bind(int64(w.Stamp)))
	}
	b.WriteString(" WHERE ")
	for i, column := range row.Columns {
		fmt.Fprintf(&b, "%s = %s AND ", t.dialect.Quote(column), bind(row.Values[i]))
	}
	fmt.Fprintf(&b, "%s = %s", version, bind(int64(w.Expected[0].Version)))
	return b.String(), args
}
