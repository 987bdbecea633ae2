package dbtx

import (
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// follow protects the rows that a statement's model names in the statement's table, too,
// if they can be identified there. The table may have been chosen at run time.
func (t *Tx) follow(stmt *gorm.Statement) error {
	table := catalogue.TableOf(stmt)
	if stmt.Schema == nil || table == "" || strings.EqualFold(table, stmt.Schema.Table) {
		return nil
	}
	t.mu.Lock()
	all := t.protected.all
	t.mu.Unlock()
	for _, r := range all {
		if r.followed || r.schema.ModelType != stmt.Schema.ModelType || t.sameTable(r.table, table) {
			continue
		}
		there := &protectedRow{table: table, schema: r.schema, fields: r.fields, values: r.values, followed: true}
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
func (t *Tx) namesRow(r *protectedRow) (bool, error) {
	if !t.factsOf(r.table).Transactional {
		return false, nil
	}
	indexes, err := t.uniqueIndexes(r.table)
	columns := catalogue.Naming(indexes)
	if t.dialect.Name == "sqlite" { // it lists no index for some primary keys
		columns = catalogue.WithPrimary(columns, r.schema.PrimaryFieldDBNames)
	}
	return slices.ContainsFunc(columns, func(c []string) bool { return catalogue.SameColumns(c, r.columns()) }), err
}
