package dbtx

import (
	"context"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// watcher is a transaction as its connection calls it.
type watcher struct{ *Tx }

// Admit implements pinned.Watcher.
func (w watcher) Admit(ctx context.Context, query string) ([]sqltext.Statement, error) {
	return w.admit(ctx, query)
}

// Took implements pinned.Watcher.
func (w watcher) Took(query string, args []any, statements []sqltext.Statement, err error) {
	w.took(query, args, statements, err)
}

// Learn implements pinned.Watcher.
func (w watcher) Learn(err error) { w.learn(err) }

// Poison implements pinned.Watcher.
func (w watcher) Poison(err error) { w.poisonWith(err) }

// took notes statements that were sent, and how the last one ended.
func (t *Tx) took(query string, args []any, statements []sqltext.Statement, err error) {
	t.learn(err)
	t.journal.Sent(len(statements))
	if err == nil {
		t.adjusted(query, args, statements)
	}
	for _, st := range statements {
		if err != nil && len(statements) == 1 {
			if st.Words()[0] == "ROLLBACK" { // what it should have undone may be committed
				t.poisonWith(err)
			}
			return
		}
		t.tookOne(st)
	}
}

func (t *Tx) tookOne(st sqltext.Statement) {
	switch last := st.Last(); st.Words()[0] {
	case "SAVEPOINT":
		t.journal.Saved(last)
	case "ROLLBACK":
		t.rolledBackTo(last)
	default:
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

// refused drops the marked statement if the database has refused it. Any other
// error came after it was done: gorm could not read what it returned, say.
func (t *Tx) refused(err error) {
	if dialect.FromServer(err) {
		t.journal.Forget()
	}
}
