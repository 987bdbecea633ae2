package dbtx

import (
	"errors"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// A NewRow is one that a call which shares a transaction is about to insert.
type NewRow struct {
	Model any
	Claim bool // it is not deleted while the outcome of a COMMIT may be looked for
}

// ProtectEach names the rows that several calls are about to insert in this transaction,
// as ProtectNew does. It reports which calls need separate transactions, and leaves their
// rows out: a row exists already, or another of these calls inserts it, or it cannot be
// identified.
func (t *Tx) ProtectEach(calls [][]NewRow) (apart []bool, err error) {
	apart = make([]bool, len(calls))
	each := make([][]*protected.Row, len(calls))
	var all []*protected.Row
	for i, rows := range calls {
		each[i], err = t.newRows(rows, i+1)
		if apart[i] = errors.Is(err, conflict.ErrUnprotectable); !apart[i] && err != nil {
			return nil, err
		}
		all = append(all, each[i]...)
	}
	there, sure, err := t.those(all)
	if err != nil {
		return nil, err
	}
	for i, rows := range each {
		apart[i] = apart[i] || !sure || t.known(rows, there)
		if apart[i] {
			continue
		}
		for _, r := range rows {
			t.judge.NoteAbsent(r)
			t.add(r)
		}
	}
	return apart, nil
}

// newRows identifies the rows that a call inserts.
func (t *Tx) newRows(news []NewRow, call int) (rows []*protected.Row, err error) {
	for _, n := range news {
		m, err := t.parse(n.Model)
		if err != nil {
			return nil, err
		}
		r, err := t.newRow(m)
		if err != nil {
			return nil, err
		}
		r.Of, r.Key, r.Kept = call, t.underKey(), n.Claim
		if err := t.identify(r); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// those reads which of rows are there.
func (t *Tx) those(rows []*protected.Row) (there map[*protected.Row]bool, sure bool, err error) {
	if len(rows) == 0 {
		return nil, true, nil
	}
	ctx, cancel := t.reader.Context()
	defer cancel()
	if there, sure, err = t.reader.Those(ctx, rows); err != nil {
		t.learn(err)
	}
	return there, sure, err
}

// known reports whether one of the rows is there or is protected already. One that was not
// there in an earlier attempt has been inserted by another writer since: the refused
// INSERT shows that.
func (t *Tx) known(rows []*protected.Row, there map[*protected.Row]bool) bool {
	for _, r := range rows {
		if _, twin := t.rows.KeyOf(r); twin || there[r] && !t.judge.WasAbsent(r) {
			return true
		}
	}
	return false
}

// Met returns the numbers, from 1, of the calls whose rows were in conflict, or nil if a
// shared row was. It is complete after Rollback.
func (t *Tx) Met() []int { return t.judge.Of() }

// HasTriggers reports whether a write to a table may write other rows, as far as the
// database shows that.
func (t *Tx) HasTriggers(table string) bool { return t.reader.Facts(table).Triggers }
