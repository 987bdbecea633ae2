package dbtx

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/fail"
)

// Own reports whether a statement is a read by the reader.
func (t *Tx) Own(ctx context.Context) bool { return reader.Own(ctx) }

// Took notes statements that were sent, and how the last one ended.
func (t *Tx) Took(query string, args []any, statements []sqltext.Statement, err error) {
	t.Learn(err)
	t.journal.Sent(len(statements))
	if err == nil {
		t.adjusted(query, args, statements)
	}
	for _, st := range statements {
		if err != nil && len(statements) == 1 {
			if st.Words()[0] == "ROLLBACK" { // the writes that it should have undone may be committed
				t.Poison(err)
			}
			return
		}
		t.noteSent(st)
	}
}

// Affected notes that a statement has written no row.
func (t *Tx) Affected(statements []sqltext.Statement, rows int64) {
	if len(statements) != 1 || rows != 0 {
		return
	}
	if _, writes := statements[0].Writes(); writes {
		t.journal.NoteEmpty()
	}
}

func (t *Tx) noteSent(st sqltext.Statement) {
	if t.dialect.Name == "mysql" && (st.SetsMode() || st.Opaque()) {
		t.reset = true
		t.database.sessions.ForgetOf(t.conn.SQL())
	}
	if t.dialect.Name == "postgres" && st.SetsPath() {
		t.reader.Move()
	}
	switch last := st.Last(); st.Words()[0] {
	case "SAVEPOINT":
		t.saved = true
		t.journal.Saved(last)
	case "ROLLBACK":
		t.rolledBackTo(last)
	default:
		fail.Point("dbtx/executed")
		t.journal.Note(st)
	}
}

func (t *Tx) rolledBackTo(savepoint string) {
	t.mu.Lock()
	t.aborted = nil
	t.mu.Unlock()
	t.journal.RolledBackTo(savepoint)
	t.reader.MoveBack()
	if t.dialect.Aborts {
		t.judge.Resume()
	}
}

// Admit refuses a statement that may not run. The reads that examine a conflict run
// even without the lease.
func (t *Tx) Admit(ctx context.Context, query string) ([]sqltext.Statement, error) {
	if reader.Own(ctx) {
		return nil, nil
	}
	if err := t.usable(); err != nil {
		return nil, err
	}
	if err := t.LeaveRoutine(); err != nil {
		return nil, err
	}
	statements := sqltext.Split(query, t.conn.Session.Grammar)
	if err := admissible(t.dialect, statements); err != nil {
		return nil, err
	}
	if t.reset || len(statements) > 1 && slices.ContainsFunc(statements, sqltext.Statement.SetsMode) {
		for _, g := range []sqltext.Grammar{sqltext.MySQL, sqltext.MySQLANSI, sqltext.MySQLPlain} {
			if err := admissible(t.dialect, sqltext.Split(query, g)); err != nil {
				return nil, err
			}
		}
	}
	if t.conn.Session.MarksWrites() && (t.conn.Session.ReadsLock || !onlyRead(statements)) {
		if err := t.mark(); err != nil {
			return statements, err
		}
	}
	return statements, t.enterRoutine(statements)
}

func onlyRead(statements []sqltext.Statement) bool {
	return !slices.ContainsFunc(statements, func(st sqltext.Statement) bool { return !st.OnlyReads() })
}

// admissible refuses SQL that would end the transaction it runs in, or change how the
// later ones of its session begin or end. It looks at the words of each statement, past
// comments and strings.
func admissible(d dialect.Dialect, statements []sqltext.Statement) error {
	for _, st := range statements {
		if st.Controls() || d.Name == "mysql" && st.SetsLater() || d.Name == "postgres" && st.SetsDefaults() {
			return fmt.Errorf("%w: %s: return from the operation instead", ErrTxControl, beginning(st))
		}
		if d.Name == "postgres" && st.KeepsPath() {
			return fmt.Errorf("%w: %s: it stays in the session: use SET LOCAL instead", ErrTxControl, beginning(st))
		}
	}
	return nil
}

// beginning returns the first words of a statement.
func beginning(st sqltext.Statement) string {
	return strings.Join(st.Words()[:min(4, len(st.Words()))], " ")
}
