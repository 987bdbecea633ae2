package journal

import (
	"slices"
	"strings"
	"sync"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// A Journal records the writes of a transaction's statements, and the functions that undo
// them in memory. It is safe for concurrent use.
type Journal struct {
	tables  Tables
	unshown bool

	mu         sync.Mutex
	sent       int // statements so far
	sentBefore int // statements before the one that runs
	writes     []Write
	marked     int     // writes before the statement that gorm is about to send
	called     bool    // a function was called that may have written
	uncertain  []Write // that return also a row that they did not insert
	undo       []func()
	savepoints []savepoint

	first struct { // room for what most transactions have
		writes [1]Write
		undo   [1]func()
	}
}

// A savepoint has the lengths of the journal when it was set.
type savepoint struct {
	name         string
	writes, undo int
}

// Tables knows the tables of a database.
type Tables interface {
	Facts(table string) catalogue.Facts
}

// Init is called once, before all others. unshown is set if some users see no triggers, as on
// MySQL and MariaDB.
func (j *Journal) Init(tables Tables, unshown bool) {
	j.tables, j.unshown = tables, unshown
	j.writes, j.undo = j.first.writes[:0], j.first.undo[:0]
}

// Sent counts statements that were sent.
func (j *Journal) Sent(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sent += n
}

// Begin is called when gorm begins a statement.
func (j *Journal) Begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sentBefore = j.sent
}

// SentNow reports whether gorm's statement was sent: a cache may have answered in the
// database's place.
func (j *Journal) SentNow() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sent > j.sentBefore
}

// Note notes a statement by its text.
func (j *Journal) Note(st sqltext.Statement) {
	table, wrote := st.Writes()
	j.mu.Lock()
	defer j.mu.Unlock()
	if wrote {
		w := Write{How: statement.Raw, Table: table, Calls: st.Calls(), Deletes: st.MayDelete()}
		j.writes = append(j.writes, w)
		if st.ReturnsFound() {
			j.uncertain = append(j.uncertain, w)
		}
	} else if st.Calls() {
		j.called = true
	}
}

// ReturnsFound reports whether a write to the table returns a row that it has found as it does one
// that it has inserted. Which of the writes to one table the program asks about is not known.
func (j *Journal) ReturnsFound(table string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.uncertain, func(w Write) bool { return w.mayBeTo(table) })
}

// NoteMessages notes an INSERT of messages. empty is set if it wrote none.
func (j *Journal) NoteMessages(table string, empty bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, Write{How: statement.Message, Table: table, Empty: empty})
}

// NoteEmpty notes the server's report that the last statement has written no row. The
// report does not cover triggers and routines.
func (j *Journal) NoteEmpty() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.writes); n > 0 {
		j.writes[n-1].Empty = true
	}
}

// Mark is called before gorm sends a statement, and after each that a plugin or a hook sends until
// then. Classify is called right after it: the write noted in between is the statement's.
func (j *Journal) Mark() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.marked = len(j.writes)
}

// MarkLast marks the last statement, after it was sent.
func (j *Journal) MarkLast() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.marked = max(0, len(j.writes)-1)
}

// Classify records the kind of the marked statement.
func (j *Journal) Classify(w Write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.writes) <= j.marked {
		return // it was not sent
	}
	j.drop()
	j.writes = append(j.writes, w)
	j.marked = len(j.writes)
}

// Forget drops the marked statement: it has written nothing, but by a function that it calls.
func (j *Journal) Forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop()
}

// drop drops what was noted of the marked statement by its text, but that it calls a function. That
// is one write: any before it was sent by a plugin past gorm. The caller holds j.mu.
func (j *Journal) drop() {
	marked := min(max(j.marked, len(j.writes)-1), len(j.writes))
	j.called = j.called || slices.ContainsFunc(j.writes[marked:], func(w Write) bool { return w.Calls })
	j.writes = j.writes[:marked]
}

// Wrote reports whether a statement wrote, or may have written by a function.
func (j *Journal) Wrote() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.called || len(j.writes) > 0
}

// WroteRows reports whether a statement may have written a row: the server did not report
// that it wrote none.
func (j *Journal) WroteRows() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.writes, func(w Write) bool { return !w.Empty })
}

// WroteUncounted reports whether a statement may have written rows of which the server reports no
// number: by a function, a trigger, a view or a part of it.
func (j *Journal) WroteUncounted() bool {
	j.mu.Lock()
	called, writes := j.called, j.writes
	j.mu.Unlock()
	return called || slices.ContainsFunc(writes, j.uncounted)
}

// uncounted reports whether the count of its rows does not say all that a write wrote.
func (j *Journal) uncounted(w Write) bool {
	switch {
	case w.isMessage():
		return false
	case !w.only():
		return true
	}
	facts := j.tables.Facts(w.Table)
	return facts.Triggers || facts.Indirect
}

// OnlyKept reports whether nothing was written but rows that are kept.
func (j *Journal) OnlyKept() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.called && !slices.ContainsFunc(j.writes, func(w Write) bool { return !w.kept() })
}

// Writes returns the writes so far.
func (j *Journal) Writes() []Write {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writes
}

// Touched reports whether the writes of the transaction may have changed a row. A write
// to another row may do so by a trigger or a cascade.
func (j *Journal) Touched(r *protected.Row) bool { return j.touched(r, false) }

// TouchedBefore reports so of the writes before the marked statement, or of all if that is classified.
func (j *Journal) TouchedBefore(r *protected.Row) bool { return j.touched(r, true) }

func (j *Journal) touched(r *protected.Row, before bool) bool {
	j.mu.Lock()
	called, writes := j.called, j.writes
	if before {
		writes = writes[:min(j.marked, len(writes))]
	}
	j.mu.Unlock()
	others := slices.ContainsFunc(writes, func(w Write) bool { return !w.kept() && !w.isMessage() })
	if called || others && j.unshown {
		return true
	}
	for i := range writes {
		w := &writes[i]
		if !w.isMessage() && j.touches(w, r) {
			return true
		}
	}
	return false
}

// touches reports whether a write may have changed a row. SQL of the program may name a view.
func (j *Journal) touches(w *Write, r *protected.Row) bool {
	if !w.only() {
		return true
	}
	facts := j.tables.Facts(w.Table)
	switch {
	case facts.Triggers, facts.Indirect && w.How == statement.Raw:
		return true
	case w.Empty:
		return false
	}
	return w.mayBeTo(r.Table) && (!w.Whole || slices.Contains(w.Rows, r)) || j.byParent(w, r)
}

// byParent reports whether a write to a row that r refers to may have deleted r or changed its
// identity by a foreign key.
func (j *Journal) byParent(w *Write, r *protected.Row) bool {
	if w.How == statement.Plain || r.Kept {
		return false
	}
	facts := j.tables.Facts(r.Table)
	return w.Deletes && facts.Cascades || facts.Rewrites(r.Identifying())
}

// OnRollback makes Undo call f, or RolledBackTo for an earlier savepoint.
func (j *Journal) OnRollback(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.undo = append(j.undo, f)
}

// Undo calls the functions of OnRollback in the reverse order, once.
func (j *Journal) Undo() {
	j.mu.Lock()
	undo := j.undo
	j.undo = nil
	j.mu.Unlock()
	runAll(undo)
}

// Committed drops the functions of OnRollback.
func (j *Journal) Committed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.undo = nil
}

// Saved notes a savepoint.
func (j *Journal) Saved(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.savepoints = append(j.savepoints, savepoint{name, len(j.writes), len(j.undo)})
}

// RolledBackTo drops the writes since the savepoint, and undoes them in memory.
func (j *Journal) RolledBackTo(name string) {
	j.mu.Lock()
	i := len(j.savepoints) - 1
	for ; i >= 0 && !strings.EqualFold(j.savepoints[i].name, name); i-- {
	}
	var undo []func()
	if i >= 0 {
		p := j.savepoints[i]
		j.savepoints = j.savepoints[:i+1]
		j.writes = j.writes[:p.writes]
		undo, j.undo = slices.Clone(j.undo[p.undo:]), j.undo[:p.undo]
	} else { // it was not seen: any write may be left
		j.writes = append(j.writes, Write{})
	}
	j.mu.Unlock()
	runAll(undo)
}

// runAll calls the undo functions, in the reverse order.
func runAll(undo []func()) {
	for _, f := range slices.Backward(undo) {
		f()
	}
}
