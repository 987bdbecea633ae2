package dbtx

import (
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/rowversion"
)

// before prepares the protected rows for a statement that is about to be sent, by protect.
func (t *Tx) before(w *statement.Write, protect func(*Tx, *statement.Write) error) error {
	if w.Table != "" {
		t.reader.Facts(w.Table) // PostgreSQL reads nothing after an error
		t.rows.Resolve(w.Table)
	}
	return protect(t, w)
}

// noteWritten records the kind of an UPDATE or DELETE that returned err, and its proofs about
// its rows.
func (t *Tx) noteWritten(of *statement.Write, affected int64, err error) {
	switch {
	case err != nil:
		t.refused(err)
		return
	case affected == 0:
		if !t.mayWriteSilently(of.Table) {
			t.journal.Forget()
		}
		return
	}
	w := journal.Write{How: statement.Blind, Table: of.Table, Rows: t.rows.Among(of), Deletes: of.Deletes}
	if n := int64(len(of.Expected)); n > 0 && affected == n {
		fail.Point("dbtx/updated")
		w.How = statement.Versioned
		w.Images = journal.Updated(&t.rows, of)
		for _, img := range w.Images {
			t.judge.SeeBefore(img.Row, protected.Reading{Found: true, Version: img.From})
		}
	}
	t.journal.Classify(w)
}

// mayWriteSilently reports whether an UPDATE or DELETE of a table may write though it counts no row: a
// trigger or a rule may write in its place, on PostgreSQL also those of a table below a view or a
// partition, and MySQL counts no row that it leaves as it was.
func (t *Tx) mayWriteSilently(table string) bool {
	if table == "" {
		return true
	}
	facts := t.reader.Facts(table)
	return facts.Triggers || t.dialect.Aborts && facts.Indirect
}

// checkLimit returns an error if a version was raised that is at the limit of its column:
// without strict mode MySQL leaves it there, and two writers would write one version. Such an
// error poisons the transaction.
func (t *Tx) checkLimit(w *statement.Write) error {
	var highest int64
	for _, e := range w.Expected {
		highest = max(highest, int64(e.Version)+w.Steps)
	}
	if highest <= catalogue.SmallestLimit || w.Deletes {
		return nil
	}
	column, err := t.reader.Column(w.Table, w.Model.Version())
	if limit, ok := column.Limit(t.dialect.Name); err == nil && ok && highest > limit {
		err = fmt.Errorf("%w: the version column %s.%s is %s, which ends at %d", rowversion.ErrVersion,
			w.Table, w.Model.Version(), column.Kind, limit)
	}
	if err != nil {
		t.Poison(err)
	}
	return err
}

// judged collects the evidence for the conflict of an UPDATE or DELETE, which is in err. If
// more rows were written than the statement was given, nothing of the transaction may remain.
func (t *Tx) judged(w *statement.Write, err error) {
	c, ok := errors.AsType[*conflict.Error](err)
	if !ok {
		if errors.Is(err, conflict.ErrUnprotectable) {
			t.Poison(err)
		}
		return
	}
	t.judge.Stale(w, c)
	if len(w.Expected) > 1 {
		t.Poison(c) // the others have been written
	}
}
