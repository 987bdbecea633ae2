package dbguard

import (
	"reflect"

	"gorm.io/gorm"
)

// culprits returns those of the protected rows of an UPDATE of several that did
// not match. What is at the next version now has just been written by the
// statement itself, unless that is true of all rows. c gets the version that
// the first of them was expected to have.
func (t *Tx) culprits(stmt *gorm.Statement, expected expectedVersion, rows []*protectedRow, c *Conflict) []*protectedRow {
	if c.Evidence.Contradicts {
		return rows
	}
	ctx, cancel := t.judging()
	defer cancel()
	var stale, differed []*protectedRow // now, and when they were first seen
	for _, r := range rows {
		version, ok := expected.versionOf(stmt, r)
		if !ok {
			continue
		}
		now, err := t.read(ctx, r, true, "")
		if err != nil || !now.found || now.version != version+1 {
			stale = append(stale, r)
		}
		if first, seen := t.memory.recall(r); seen && first.version != version {
			differed = append(differed, r)
		}
	}
	switch {
	case len(stale) > 0:
	case len(differed) > 0:
		stale = differed
	default:
		return rows
	}
	c.Evidence.Version, _ = expected.versionOf(stmt, stale[0])
	return stale
}

// versionOf returns the version that a protected row was expected to have.
func (e expectedVersion) versionOf(stmt *gorm.Statement, r *protectedRow) (Version, bool) {
	for _, loaded := range e.rows {
		row := reflect.Indirect(loaded.model)
		if r.is(func(column string) any {
			if f := stmt.Schema.LookUpField(column); f != nil {
				return fieldOf(stmt.Context, f, row)
			}
			return nil
		}) {
			return loaded.version, true
		}
	}
	return 0, false
}
