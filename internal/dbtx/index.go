package dbtx

import "github.com/belaygo/belay/internal/dbtx/catalogue"

// uniqueIndexes returns the unique indexes of a table, and remembers them unless there
// are none: the table may not have been made yet.
func (t *Tx) uniqueIndexes(table string) ([]catalogue.Index, error) {
	indexes, err := remembered(t, &t.plugin.indexes, table, catalogue.Indexes)
	if len(indexes) == 0 {
		t.plugin.indexes.Delete(table)
	}
	return indexes, err
}
