package dbguard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// A suspect is a protected row that a refused statement may have met. Go knows that it
// has if the values are equal, and that it has not if numbers differ. In all other
// cases the database is asked: it may compare and keep values in its own way.
type suspect struct {
	row    *protectedRow
	sure   bool              // Go knows
	ask    clause.Expression // asks whether row is the statement's; nil if its key tells
	given  [][]any           // what an INSERT has for the columns of row, nil for what it leaves to the database
	loaded []loadedKey       // the rows that an UPDATE expected

	clean    bool // the transaction had not written row by then
	expected bool // in the transaction it had the version that the statement expected
}

// asExpected reports whether a row that was read is as the statement expected, or would
// be but for what the transaction had written before, and undone since.
func (s *suspect) asExpected(now, expected Version) bool {
	return s.expected || now == expected || !s.clean && now < expected
}

// A loadedKey is a row as it was loaded.
type loadedKey struct {
	key     []any // primary key
	version Version
}

// loadedAs returns the statement's row that has the primary key which was read, or nil.
func (s *suspect) loadedAs(now reading) *loadedKey {
	for i, l := range s.loaded {
		if now.found && len(l.key) > 0 && sameKey(l.key, now.key) {
			return &s.loaded[i]
		}
	}
	return nil
}

// version returns the version that the statement expected of the row.
func (s *suspect) version(now reading) Version {
	if l := s.loadedAs(now); l != nil {
		return l.version
	}
	if len(s.loaded) == 1 {
		return s.loaded[0].version
	}
	return 0
}

// suspectsOfInsert returns the protected rows that a refused INSERT may have met.
func (t *Tx) suspectsOfInsert(stmt *gorm.Statement) (suspects []*suspect) {
	if stmt.Schema == nil {
		return nil
	}
	sure := make(map[*protectedRow]bool)
	for _, r := range t.protectedAmong(stmt) {
		sure[r] = true
		suspects = append(suspects, &suspect{row: r, sure: true, given: [][]any{r.values}})
	}
	for _, r := range t.protectedIn(tableOf(stmt)) {
		if sure[r] {
			continue
		}
		s := &suspect{row: r}
		var rows []clause.Expression
		eachRow(stmt, func(value func(column string) any) {
			if given, ask := r.givenBy(stmt, value); ask != nil {
				s.given = append(s.given, given)
				rows = append(rows, ask)
			}
		})
		if len(rows) > 0 {
			s.ask = clause.Or(rows...)
			suspects = append(suspects, s)
		}
	}
	return suspects
}

// givenBy returns what an inserted row gives the columns of r, and the condition that
// this is r; nil if it can't be.
func (r *protectedRow) givenBy(stmt *gorm.Statement, value func(column string) any) (given []any, ask clause.Expression) {
	var conds []clause.Expression
	for i, f := range r.fields {
		v := value(f.DBName)
		own := stmt.Schema.LookUpField(f.DBName)
		if own == nil || !own.Creatable || isNull(v) || isZero(v) && own.HasDefaultValue {
			given = append(given, nil) // the database fills it
			continue
		}
		if differentNumbers(v, r.values[i]) {
			return nil, nil
		}
		given = append(given, v)
		conds = append(conds, clause.Eq{Column: clause.Column{Name: f.DBName}, Value: v})
	}
	if len(conds) == 0 {
		return nil, nil
	}
	return given, clause.And(conds...)
}

// suspectsOfUpdate returns the protected rows of a versioned UPDATE or DELETE that
// matched fewer rows than it was given.
func (t *Tx) suspectsOfUpdate(stmt *gorm.Statement, expected expectedVersion) (suspects []*suspect) {
	sure := make(map[*protectedRow]bool)
	var all []loadedKey
	for _, l := range expected.rows {
		loaded := loadedKey{keyOf(stmt, l.model), l.version}
		all = append(all, loaded)
		for _, r := range t.rowsWith(stmt, valuesOf(stmt, l.model)) {
			sure[r] = true
			suspects = append(suspects, &suspect{row: r, sure: true, loaded: []loadedKey{loaded}})
		}
	}
	for _, r := range t.protectedIn(tableOf(stmt)) {
		if sure[r] || !r.mayBeAmong(stmt, all) {
			continue
		}
		s := &suspect{row: r, loaded: all}
		if len(all) == 1 {
			s.ask = keyCondition(stmt, all[0].key)
		}
		suspects = append(suspects, s)
	}
	return suspects
}

// mayBeAmong reports whether r, if its primary key names it, may be one of the rows.
func (r *protectedRow) mayBeAmong(stmt *gorm.Statement, rows []loadedKey) bool {
	if !sameColumns(r.columns(), stmt.Schema.PrimaryFieldDBNames) {
		return true
	}
	for _, row := range rows {
		differs := false
		for i, f := range stmt.Schema.PrimaryFields {
			differs = differs || differentNumbers(row.key[i], r.value(f.DBName))
		}
		if !differs {
			return true
		}
	}
	return false
}

// keyCondition is the condition that a row has a primary key; nil if numbers make it
// up, which Go compares as well.
func keyCondition(stmt *gorm.Statement, key []any) clause.Expression {
	var conds []clause.Expression
	numbers := true
	for i, f := range stmt.Schema.PrimaryFields {
		numbers = numbers && isInteger(key[i])
		conds = append(conds, clause.Eq{Column: clause.Column{Name: f.DBName}, Value: key[i]})
	}
	if numbers {
		return nil
	}
	return clause.And(conds...)
}

// value returns the value that names the row in a column.
func (r *protectedRow) value(column string) any {
	for i, f := range r.fields {
		if f.DBName == column {
			return r.values[i]
		}
	}
	return nil
}

// protectedIn returns the protected rows of a table.
func (t *Tx) protectedIn(table string) (rows []*protectedRow) {
	t.mu.Lock()
	all := t.protected.all
	t.mu.Unlock()
	for _, r := range all {
		if t.sameTable(r.table, table) {
			rows = append(rows, r)
		}
	}
	return rows
}

// differentNumbers reports whether two values are integers that differ.
func differentNumbers(a, b any) bool { return isInteger(a) && isInteger(b) && !equal(a, b) }

func isInteger(v any) bool {
	rv := reflect.ValueOf(indirect(v))
	return rv.CanInt() || rv.CanUint()
}
