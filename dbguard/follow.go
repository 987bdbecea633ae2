package dbguard

import (
	"slices"

	"gorm.io/gorm"
)

// follow protects the rows that are named by a statement's model in the statement's
// table, too, which may have been chosen at run time, if they can be told there.
func (t *Tx) follow(stmt *gorm.Statement) error {
	table := tableOf(stmt)
	if stmt.Schema == nil || table == "" {
		return nil
	}
	for _, r := range t.notFollowed(stmt, table) {
		there := &protectedRow{table: table, schema: r.schema, fields: r.fields, followed: true}
		there.setValues(r.values)
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

// namesRow reports whether the columns of r name one row of its table at most, which
// may be no more than a log of the model's rows.
func (t *Tx) namesRow(r *protectedRow) (bool, error) {
	if !t.factsOf(r.table).Transactional {
		return false, nil
	}
	indexes, err := t.uniqueIndexes(r.table)
	columns := naming(indexes)
	if t.dialect.name == "sqlite" { // it lists no index for some primary keys
		columns = withPrimary(columns, r.schema.PrimaryFieldDBNames)
	}
	return slices.ContainsFunc(columns, func(c []string) bool { return sameColumns(c, r.columns()) }), err
}

// notFollowed returns the rows that are named by the statement's model and have not
// been followed to its table.
func (t *Tx) notFollowed(stmt *gorm.Statement, table string) (rows []*protectedRow) {
	t.mu.Lock()
	all, from := t.protected.all, t.protected.followed[table]
	t.mu.Unlock()
	for _, r := range all[from:] {
		if !r.tagged && !r.followed && r.schema.ModelType == stmt.Schema.ModelType && !t.sameTable(r.table, table) {
			rows = append(rows, r)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.protected.followed == nil {
		t.protected.followed = make(map[string]int)
	}
	t.protected.followed[table] = len(all)
	return rows
}
