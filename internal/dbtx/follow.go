package dbtx

import (
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// follow protects the rows that a statement's model names in the statement's table, too,
// if they can be identified there. The table may have been chosen at run time.
func (t *Tx) follow(stmt *gorm.Statement) error {
	table := catalogue.TableOf(stmt)
	if stmt.Schema == nil || table == "" || strings.EqualFold(table, stmt.Schema.Table) {
		return nil
	}
	for _, r := range t.rows.All() {
		if r.Followed || r.Schema.ModelType != stmt.Schema.ModelType || t.reader.SameTable(r.Table, table) {
			continue
		}
		there := &protected.Row{Table: table, Schema: r.Schema, Fields: r.Fields, Values: r.Values, Followed: true}
		names, err := t.reader.NamesRow(there)
		if err == nil && names {
			err = t.protect(there)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
