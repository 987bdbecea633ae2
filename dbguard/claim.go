package dbguard

import (
	"fmt"

	"gorm.io/gorm"
)

// claimNew protects the rows that a statement is about to insert, if their
// model's tag renders to the key.
func (t *Tx) claimNew(stmt *gorm.Statement) error {
	return t.claim(stmt, func(tmpl *template) (keys [][]string, err error) {
		table := tableOf(stmt)
		indexes, err := t.uniqueIndexes(table)
		if err != nil {
			return nil, err
		}
		for _, columns := range withPrimary(naming(indexes), stmt.Schema.PrimaryFieldDBNames) {
			if tmpl.goesWith(columns) {
				keys = append(keys, columns)
			}
		}
		if len(keys) == 0 {
			return nil, fmt.Errorf("%w: no unique index of %s goes with the fields of its tag", ErrUnprotectable, table)
		}
		return keys, nil
	})
}

// claimLoaded does so for rows that are there, by their primary key.
func (t *Tx) claimLoaded(stmt *gorm.Statement) error {
	return t.claim(stmt, func(*template) ([][]string, error) {
		return [][]string{stmt.Schema.PrimaryFieldDBNames}, nil
	})
}

// claim protects the rows of a statement by the keys that are given, where they
// have all their values.
func (t *Tx) claim(stmt *gorm.Statement, keys func(*template) ([][]string, error)) error {
	if t.key == "" || stmt.Schema == nil || tableOf(stmt) == "" {
		return nil
	}
	tmpl, err := t.plugin.templateOf(stmt.Schema)
	if tmpl == nil {
		return err
	}
	var found []*protectedRow
	eachRow(stmt, func(value func(column string) any) {
		key, ok := tmpl.render(value)
		if !ok || key != t.key || err != nil {
			return
		}
		var all [][]string
		if all, err = keys(tmpl); err != nil {
			return
		}
		for _, columns := range all {
			if r := rowOf(stmt, columns, value); r != nil {
				found = append(found, r)
			}
		}
	})
	for _, r := range found {
		if err == nil {
			err = t.protect(r)
		}
	}
	return err
}

// rowOf names a row of a statement, nil if it lacks a value.
func rowOf(stmt *gorm.Statement, columns []string, value func(column string) any) *protectedRow {
	r := &protectedRow{table: tableOf(stmt), schema: stmt.Schema, tagged: true}
	m := parsedModel{stmt: stmt}
	for _, name := range columns {
		f := m.field(name)
		if f == nil {
			return nil
		}
		v := value(f.DBName)
		if isNull(v) || f.PrimaryKey && isZero(v) {
			return nil
		}
		r.fields = append(r.fields, f)
		r.values = append(r.values, v)
	}
	if len(r.fields) == 0 {
		return nil
	}
	return r
}
