package evidence

import (
	"context"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// note adds the reading of a suspect to the evidence, if the row changed or the statement
// met it.
func (j *Judge) note(ctx context.Context, c *inquiry, s *suspect, now protected.Reading, changed bool) error {
	if !changed {
		met, err := j.met(ctx, c, s, now)
		if !met || err != nil {
			return err
		}
	}
	version := s.version(now)
	e := conflict.Evidence{
		Protected:    true,
		Found:        now.Found,
		Changed:      changed,
		Shared:       j.shared(c, s.row) || j.Reader.SpelledOtherwise(s.row, now, s.row.Values),
		Expected:     c.Kind == conflict.Stale && now.Found && s.asExpected(now.Version, version),
		Behind:       j.Reader.Session.Behind,
		Version:      version,
		FoundVersion: now.Version,
	}
	if changed && j.byParent(s.row, now) {
		e.Shared = true // with the key of the row that it refers to
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	c.of = append(c.of, s.row.Of)
	if !c.Evidence.Found || weight(e) > weight(c.Evidence) {
		c.Evidence = e
		c.about(s.row)
		if c.doubtful { // or the statement has named it
			c.Table = s.row.Table
		}
	}
	return nil
}

// byParent reports whether a write to a row that r refers to may explain the present reading
// of r: a foreign key may delete r or change its identity, and never raises its version.
func (j *Judge) byParent(r *protected.Row, now protected.Reading) bool {
	if first, seen := j.Memory.Recall(r); seen && first.Found && now.Found && now.Version > first.Version {
		return false
	}
	facts := j.Reader.Facts(r.Table)
	return !now.Found && facts.Cascades || facts.Rewrites(r.Identifying())
}

// shared reports whether another key may protect r, too.
func (j *Judge) shared(c *inquiry, r *protected.Row) bool {
	return r.Followed || j.Rows.Several(r.Key) || c.Evidence.Shared && c.Key == r.Key
}

// met reports whether the row that was read is one of the statement's.
func (j *Judge) met(ctx context.Context, c *inquiry, s *suspect, now protected.Reading) (bool, error) {
	switch {
	case c.doubtful, !now.Found:
		return false, nil
	case !s.sure && s.loadedAs(now) == nil:
		if s.ask == nil {
			return false, nil
		}
		row, err := j.Reader.Load(ctx, protected.Query{Row: s.row, Columns: s.row.Columns, Any: s.ask})
		if err != nil || row == nil {
			return false, err
		}
	}
	for _, given := range s.given {
		if !j.Reader.SpelledOtherwise(s.row, now, given) {
			return true, nil
		}
	}
	if len(s.given) > 0 {
		c.ownIndex = false // the index refused a row of another key
	}
	return len(s.given) == 0, nil
}

// countIndex notes that a row is there which no read finds, if its own index refused the
// insert. The database keeps the row in another form than it was given, or hides it.
func (j *Judge) countIndex(c *inquiry) {
	if c.ownIndex && c.clean && !c.open && !c.Evidence.Found && !c.Evidence.Changed {
		j.unread(c)
	}
}

func (j *Judge) unread(c *inquiry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c.Evidence.Unread = true
}

// firedOwnIndex reports whether an insert of n rows was refused by an index that
// protects each of them. It reports false if that is not known.
func (j *Judge) firedOwnIndex(c *inquiry, n int) bool {
	if len(c.suspects) == 0 {
		return false
	}
	indexes, _ := j.Reader.Indexes(c.suspects[0].row.Table)
	table, index, ok := j.Reader.Session.RefusingIndex(c.Err)
	if !ok || table != "" && table != catalogue.BareName(c.Table) {
		return false
	}
	i := slices.IndexFunc(indexes, func(i catalogue.Index) bool { return strings.EqualFold(i.Name, index) })
	if i < 0 || table == "" && j.Reader.Facts(c.Table).Triggers && !j.Reader.OnlyIndex(c.Table, index) {
		return false // a trigger may have met an index of another table
	}
	for _, s := range c.suspects {
		if s.sure && catalogue.SameColumns(indexes[i].Columns, s.row.Columns) {
			n--
		}
	}
	return n == 0
}
