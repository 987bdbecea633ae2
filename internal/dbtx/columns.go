package dbtx

import (
	"strings"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// columnOf returns a column of a table, and remembers all of them.
func (t *Tx) columnOf(table, name string) (catalogue.Column, error) {
	columns, err := remembered(t, &t.plugin.columns, table, catalogue.Columns)
	return columns[strings.ToLower(name)], err
}
