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
	indexes, _ := t.reader.Indexes(c.suspects[0].row.Table)
	table, index, ok := t.conn.Session.RefusingIndex(c.Err)
	if !ok || table != "" && table != catalogue.BareName(c.Table) {
		return false
	}
	i := slices.IndexFunc(indexes, func(i catalogue.Index) bool { return strings.EqualFold(i.Name, index) })
	if i < 0 || table == "" && t.reader.Facts(c.Table).Triggers && !t.reader.OnlyIndex(c.Table, index) {
		return false // a trigger may have met an index of another table
	}
	for _, s := range c.suspects {
		if s.sure && catalogue.SameColumns(indexes[i].Columns, s.row.Columns()) {
			n--
		}
	}
	return n == 0
}
