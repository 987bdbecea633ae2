package dbtx

import (
	"context"
	"fmt"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/fail"
)

// Took notes statements that were sent, and how the last one ended.
func (t *Tx) Took(query string, args []any, statements []sqltext.Statement, err error) {
	t.Learn(err)
	t.journal.Sent(len(statements))
	if err == nil {
		t.adjusted(query, args, statements)
	}
	for _, st := range statements {
		if err != nil && len(statements) == 1 {
			if st.Words()[0] == "ROLLBACK" { // what it should have undone may be committed
				t.Poison(err)
			}
			return
		}
		t.noteSent(st)
	}
}

func (t *Tx) noteSent(st sqltext.Statement) {
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
	if t.dialect.Aborts {
		t.judge.Resume()
	}
}

// Admit refuses a statement that may not run. The reads that judge a conflict run
// whatever has become of the lease.
func (t *Tx) Admit(ctx context.Context, query string) ([]sqltext.Statement, error) {
	if reader.Own(ctx) {
		return nil, nil
	}
	if err := t.usable(); err != nil {
		return nil, err
	}
	statements := t.dialect.Statements(query)
	return statements, admissible(t.dialect, statements)
}

// admissible refuses SQL that would end the transaction it runs in, or change how the
// later ones of its session begin. It looks at the words of each statement, past
// comments and strings.
func admissible(d dialect.Dialect, statements []sqltext.Statement) error {
	for _, st := range statements {
		if st.Controls() || d.Name == "mysql" && st.SetsIsolation() {
			return fmt.Errorf("%w: %s", ErrTxControl, strings.Join(st.Words()[:min(4, len(st.Words()))], " "))
		}
	}
	return nil
}
