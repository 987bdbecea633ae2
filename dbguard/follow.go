package dbguard

import "gorm.io/gorm"

// follow protects the rows that are named by a statement's model in the statement's
// table, too, which may have been chosen at run time.
func (t *Tx) follow(stmt *gorm.Statement) error {
	table := tableOf(stmt)
	if stmt.Schema == nil || table == "" {
		return nil
	}
	for _, r := range t.notFollowed(stmt, table) {
		there := &protectedRow{table: table, schema: r.schema, fields: r.fields, followed: true}
		there.setValues(r.values)
		if err := t.protect(there); err != nil {
			return err
		}
	}
	return nil
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
