package dbtx

import (
	"slices"
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
		if r.Followed || r.Schema.ModelType != stmt.Schema.ModelType || t.sameTable(r.Table, table) {
			continue
		}
		there := &protected.Row{Table: table, Schema: r.Schema, Fields: r.Fields, Values: r.Values, Followed: true}
		names, err := t.namesRow(there)
		if err == nil && names {
			err = t.protect(there)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namesRow reports whether the columns of r name at most one row of its table. The table
// may be no more than a log of the model's rows.
func (t *Tx) namesRow(r *protected.Row) (bool, error) {
	if !t.factsOf(r.Table).Transactional {
		return false, nil
	}
	indexes, err := t.uniqueIndexes(r.Table)
	columns := catalogue.Naming(indexes)
	if t.dialect.Name == "sqlite" { // it lists no index for some primary keys
		columns = catalogue.WithPrimary(columns, r.Schema.PrimaryFieldDBNames)
	}
	return slices.ContainsFunc(columns, func(c []string) bool { return catalogue.SameColumns(c, r.Columns()) }), err
}
