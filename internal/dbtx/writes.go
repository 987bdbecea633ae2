package dbtx

import (
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// A write is a statement of a transaction that wrote.
type write struct {
	how     how
	table   string           // "" if it is not known
	deletes bool             // it is a DELETE, which may cascade
	rows    []*protected.Row // that it wrote, as far as is known
	whole   bool             // it wrote no others
	images  []image          // of these rows
}

// how is the way in which a statement wrote.
type how int

const (
	raw       how = iota // SQL of the caller's own, or what gorm makes of it
	plain                // INSERT
	versioned            // UPDATE or DELETE with a compare, that matched all its rows
	blind                // UPDATE or DELETE without a compare, upsert, INSERT IGNORE and the like
)

// mayBeTo reports whether the write may be to a table.
func (w *write) mayBeTo(table string) bool {
	return w.table == "" || catalogue.MayBeTable(w.table, table)
}

// covers reports whether the database itself refuses the second such write.
func (w *write) covers() bool { return w.how == plain || w.how == versioned }

// A savepoint is how far the transaction was when it was set.
type savepoint struct {
	name         string
	writes, undo int
}

// took notes statements that were sent, and how the last one ended.
func (t *Tx) took(query string, args []any, statements []sqltext.Statement, err error) {
	t.learn(err)
	t.mu.Lock()
	t.sent += len(statements)
	t.mu.Unlock()
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
		t.saved(last)
	case "ROLLBACK":
		t.rolledBackTo(last)
	default:
		if table, ok := st.Writes(); ok {
			w := write{how: raw, table: table}
			t.mu.Lock()
			t.writes = append(t.writes, w)
			t.mu.Unlock()
		} else if st.Calls() {
			t.mu.Lock()
			t.called = true
			t.mu.Unlock()
		}
	}
}

func (t *Tx) saved(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.savepoints = append(t.savepoints, savepoint{name, len(t.writes), len(t.undo)})
}

// rolledBackTo cuts back what was written since the savepoint, and undoes what
// was changed in memory.
func (t *Tx) rolledBackTo(name string) {
	t.mu.Lock()
	t.aborted = nil
	i := len(t.savepoints) - 1
	for ; i >= 0 && !strings.EqualFold(t.savepoints[i].name, name); i-- {
	}
	var undo []func()
	if i >= 0 {
		p := t.savepoints[i]
		t.savepoints = t.savepoints[:i+1]
		t.writes = t.writes[:p.writes]
		undo, t.undo = slices.Clone(t.undo[p.undo:]), t.undo[:p.undo]
	} else { // unheard of: nobody knows what is left
		t.writes = append(t.writes, write{})
	}
	t.mu.Unlock()
	runAll(undo)
	if t.dialect.Aborts {
		t.resume()
	}
}

// mark is called right before gorm sends a statement, and classify right after
// it: what was noted between is the statement's own.
func (t *Tx) mark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marked = len(t.writes)
}

// classify says what the marked statement was.
func (t *Tx) classify(w write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.writes) <= t.marked {
		return // it was not sent
	}
	t.writes = append(t.writes[:t.marked], w)
}

// refused drops the marked statement if the database has refused it. Any other
// error came after it was done: gorm could not read what it returned, say.
func (t *Tx) refused(err error) {
	if dialect.FromServer(err) {
		t.forget()
	}
}

// forget drops the marked statement: it has written nothing.
func (t *Tx) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes = t.writes[:min(t.marked, len(t.writes))]
}
