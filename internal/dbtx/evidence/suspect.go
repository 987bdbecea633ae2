package evidence

import (
	"slices"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/rowversion"
)

// A suspect is a protected row that a refused statement may have met. If the values are
// equal in Go, it has; if integers differ, it has not. In all other cases a query
// decides: a database may compare and store values in its own way.
type suspect struct {
	row    *protected.Row
	sure   bool                    // the values are equal in Go
	ask    [][]protected.Condition // that row is the statement's; nil if the primary key decides
	given  [][]any                 // the values of an INSERT for the columns of row; the database chooses for nil
	loaded []loadedKey             // the rows that an UPDATE expected

	clean    bool // the transaction had not written row before the conflict
	expected bool // the transaction read the version that the statement expected
}

// asExpected reports whether the row is as the statement expected. After the rollback of
// a transaction that had written the row, an older version is that, too.
func (s *suspect) asExpected(now, expected rowversion.Version) bool {
	return s.expected || now == expected || !s.clean && now < expected
}

// A loadedKey is a row as it was loaded.
type loadedKey struct {
	key     []any // primary key
	version rowversion.Version
}

// loadedAs returns the row of the statement that has the primary key of now, or nil.
func (s *suspect) loadedAs(now protected.Reading) *loadedKey {
	for i, l := range s.loaded {
		if now.Found && len(l.key) > 0 && sqlvalue.SameKey(l.key, now.Key) {
			return &s.loaded[i]
		}
	}
	return nil
}

// version returns the version that the statement expected of the row.
func (s *suspect) version(now protected.Reading) rowversion.Version {
	if l := s.loadedAs(now); l != nil {
		return l.version
	}
	if len(s.loaded) == 1 {
		return s.loaded[0].version
	}
	return 0
}

// suspectsOfInsert returns the protected rows that a refused INSERT may have met.
func (j *Judge) suspectsOfInsert(w *statement.Write) (suspects []*suspect) {
	if w.Model == nil {
		return nil
	}
	sure := make(map[*protected.Row]bool)
	for _, r := range j.Rows.Among(w) {
		sure[r] = true
		suspects = append(suspects, &suspect{row: r, sure: true, given: [][]any{r.Values}})
	}
	for _, r := range j.Rows.In(w.Table) {
		if sure[r] {
			continue
		}
		if r.Of != 0 { // its call has not inserted yet
			suspects = append(suspects, &suspect{row: r, sure: true, given: [][]any{r.Values}})
			continue
		}
		s := &suspect{row: r}
		for _, row := range w.Rows {
			if given, ask := givenBy(r, w.Model, row.Value); ask != nil {
				s.given = append(s.given, given)
				s.ask = append(s.ask, ask)
			}
		}
		if len(s.ask) > 0 {
			suspects = append(suspects, s)
		}
	}
	return suspects
}

// givenBy returns an inserted row's values for the columns of r, and the condition
// under which it is r. The condition is nil if it cannot be.
func givenBy(r *protected.Row, model statement.Model, value statement.Value) (given []any, ask []protected.Condition) {
	for i, column := range r.Columns {
		v := value(column)
		if model.Fills(column, v) {
			given = append(given, nil) // the database fills it
			continue
		}
		if sqlvalue.DifferentIntegers(v, r.Values[i]) {
			return nil, nil
		}
		given = append(given, v)
		ask = append(ask, protected.Condition{Column: column, Value: v})
	}
	if len(ask) == 0 {
		return nil, nil
	}
	return given, ask
}

// suspectsOfUpdate returns the protected rows of a versioned UPDATE or DELETE that
// matched fewer rows than it was given.
func (j *Judge) suspectsOfUpdate(w *statement.Write) (suspects []*suspect) {
	sure := make(map[*protected.Row]bool)
	var all []loadedKey
	for _, e := range w.Expected {
		loaded := loadedKey{e.Key, e.Version}
		all = append(all, loaded)
		for r := range j.Rows.Matching(w.Table, e.Value) {
			sure[r] = true
			suspects = append(suspects, &suspect{row: r, sure: true, loaded: []loadedKey{loaded}})
		}
	}
	for _, r := range j.Rows.In(w.Table) {
		if sure[r] || !mayBeAmong(r, w.Model, all) {
			continue
		}
		s := &suspect{row: r, loaded: all}
		if len(all) == 1 {
			s.ask = keyCondition(w.Model, all[0].key)
		}
		suspects = append(suspects, s)
	}
	return suspects
}

// mayBeAmong reports whether r, if its primary key names it, may be one of the rows.
func mayBeAmong(r *protected.Row, model statement.Model, rows []loadedKey) bool {
	if !catalogue.SameColumns(r.Columns, model.Primary()) {
		return true
	}
	return slices.ContainsFunc(rows, func(row loadedKey) bool {
		for i, column := range model.Primary() {
			if sqlvalue.DifferentIntegers(row.key[i], r.Value(column)) {
				return false
			}
		}
		return true
	})
}

// keyCondition is the condition that a row has a primary key. It is nil for a key of
// integers, which Go compares as the database does.
func keyCondition(model statement.Model, key []any) [][]protected.Condition {
	var conds []protected.Condition
	numbers := true
	for i, column := range model.Primary() {
		numbers = numbers && sqlvalue.IsInteger(key[i])
		conds = append(conds, protected.Condition{Column: column, Value: key[i]})
	}
	if numbers {
		return nil
	}
	return [][]protected.Condition{conds}
}
