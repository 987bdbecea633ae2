package dbtx

import (
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// firedOwnIndex reports whether an insert of n rows was refused by an index that
// protects each of them. It reports false if that is not known.
func (t *Tx) firedOwnIndex(c *inquiry, n int) bool {
	if len(c.suspects) == 0 {
		return false
	}
	indexes, _ := t.uniqueIndexes(c.suspects[0].row.Table)
	table, index, ok := t.conn.session.RefusingIndex(c.Err)
	if !ok || table != "" && table != catalogue.BareName(c.Table) {
		return false
	}
	i := slices.IndexFunc(indexes, func(i catalogue.Index) bool { return strings.EqualFold(i.Name, index) })
	if i < 0 || table == "" && t.factsOf(c.Table).Triggers && !t.onlyIndex(c.Table, index) {
		return false // a trigger may have met an index of another table
	}
	for _, s := range c.suspects {
		if s.sure && catalogue.SameColumns(indexes[i].Columns, s.row.Columns()) {
			n--
		}
	}
	return n == 0
}

// onlyIndex reports whether no other table of its schema is known to have an index of the
// name.
func (t *Tx) onlyIndex(table, index string) bool {
	if strings.EqualFold(index, "PRIMARY") {
		return false
	}
	ctx, cancel := t.judging()
	defer cancel()
	others, err := catalogue.OthersHaveIndex(t.quiet(ctx, t.db), table, index)
	return err == nil && !others
}
