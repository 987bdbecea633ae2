package evidence

import (
	"context"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// LookBefore reads a row when it becomes protected, where no snapshot can be read after
// a conflict.
func (j *Judge) LookBefore(r *protected.Row) error {
	if j.Reader.Session.Snapshot && !j.Reader.Session.RefusesChanged || j.Journal.Touched(r) {
		return nil
	}
	if r.Kept || r.Struct != nil { // it is about to be inserted: most often it is not there, and nothing more is to be read
		if deferred, err := j.Reader.DeferLook(r, func(there bool) { j.looked(r, there) }); deferred || err != nil {
			return err
		}
	}
	ctx, cancel := j.Reader.Context()
	defer cancel()
	now, err := j.Reader.Read(ctx, r, true, "")
	if err != nil {
		return err
	}
	j.Memory.See(r, now)
	return nil
}

// A look is one that had waited.
type look struct {
	row   *protected.Row
	there bool
}

// looked notes whether a row is there. A claim that is not is about to be inserted.
func (j *Judge) looked(r *protected.Row, there bool) {
	if r.Kept && !there {
		j.NoteAbsent(r)
		return
	}
	j.looks = append(j.looks, look{r, there})
}

// LookAgain notes what was found by looks which had waited, and reads the rows that are there.
func (j *Judge) LookAgain() error {
	looks := j.looks
	j.looks = nil
	for _, l := range looks {
		if !l.there {
			j.NoteAbsent(l.row)
			continue
		}
		if err := j.LookBefore(l.row); err != nil {
			return err
		}
	}
	return nil
}

// SeeBefore notes how a row was before the marked statement, as the statement's success
// proves. It proves nothing if the transaction may have written the row earlier.
func (j *Judge) SeeBefore(r *protected.Row, was protected.Reading) {
	if !j.Journal.TouchedBefore(r) {
		j.Memory.See(r, was)
	}
}

// NoteMissing notes which of the rows are not there. A writer that inserts one from now on
// does so while this caller has the lock.
func (j *Judge) NoteMissing(ctx context.Context, rows []*protected.Row) {
	for _, r := range rows {
		if now, err := j.Reader.Read(ctx, r, false, ""); err == nil && !now.Found {
			j.Memory.See(r, now)
		}
	}
}

// Saw notes a row that a query has returned. If the row has changed since this
// operation saw it first, another writer has written it, and Saw returns that conflict.
func (j *Judge) Saw(r *protected.Row, now protected.Reading) *conflict.Error {
	if first := j.Memory.See(r, now); first.ChangedTo(now) {
		return j.confirm(r, first)
	}
	return nil
}

// confirm reads a row itself that has changed according to a query, which a plugin may
// have sent elsewhere.
func (j *Judge) confirm(r *protected.Row, first protected.Reading) *conflict.Error {
	ctx, cancel := j.Reader.Context()
	defer cancel()
	now, err := j.Reader.Read(ctx, r, true, "")
	if err == nil && j.Reader.ReadsNewest() {
		now, err = j.Reader.ReadNow(ctx, r, true, now)
	}
	if err != nil || now.Locked || !first.ChangedTo(now) {
		return nil
	}
	c := &conflict.Error{Kind: conflict.Stale, Table: r.Table, Columns: r.Columns, Key: r.Key, Subject: subject(r)}
	c.Evidence = conflict.Evidence{Protected: true, Found: now.Found, Changed: true, Shared: j.byParent(r, now), Behind: j.Reader.Session.Behind, Version: first.Version, FoundVersion: now.Version}
	j.keep(&inquiry{Error: c})
	return c
}

// NoteAbsent notes that a row is not there, before the transaction writes.
func (j *Judge) NoteAbsent(r *protected.Row) { j.Memory.See(r, protected.Reading{}) }

// WasAbsent reports whether a row was not there when this operation saw it first.
func (j *Judge) WasAbsent(r *protected.Row) bool {
	first, seen := j.Memory.Recall(r)
	return seen && !first.Found
}
