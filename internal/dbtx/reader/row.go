package reader

import (
	"strings"
	"time"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// Identifies reports whether the columns of r name at most one row of its table. The table
// may be only a log of the model's rows.
func (q *Reader) Identifies(r *protected.Row) (bool, error) {
	if !q.Facts(r.Table).Transactional {
		return false, nil
	}
	indexes, err := q.Indexes(r.Table)
	return catalogue.IsUnique(indexes, r.Columns), err
}

// RoundTimes sets the times in a row's key to the values that the database stores: with
// the digits of their columns, cut off on MariaDB and rounded elsewhere, or as days. By
// other values the row would not be found.
func (q *Reader) RoundTimes(r *protected.Row) error {
	r.Stored = nil
	for i, v := range r.Values {
		at, ok := sqlvalue.Plain(v).(time.Time)
		if !ok || q.Dialect.Name == "sqlite" {
			continue
		}
		column, err := q.Column(r.Table, r.Columns[i])
		if err != nil {
			return err
		}
		if r.Stored == nil {
			r.Stored = append([]any(nil), r.Values...)
		}
		unit := column.Unit()
		switch {
		case strings.EqualFold(column.Kind, "date"):
			r.Stored[i] = sqlvalue.Day{Time: at, MySQL: q.Dialect.Name == "mysql"}
		case q.Session.Family == dialect.MariaDB:
			r.Stored[i] = at.Truncate(unit)
		case q.Dialect.Name == "postgres": // its driver sends no more than microseconds
			r.Stored[i] = at.Truncate(time.Microsecond).Round(unit)
		default:
			r.Stored[i] = at.Round(unit)
		}
	}
	return nil
}

// SpelledOtherwise reports whether the database has other texts in a row's name than were
// given. They are equal by its collation, but in different keys. Only columns count that
// return a text as it was given.
func (q *Reader) SpelledOtherwise(r *protected.Row, now protected.Reading, given []any) bool {
	for i, name := range r.Columns {
		text, ok := sqlvalue.Text(given[i])
		stored, read := now.Texts[name]
		if ok && read && text != stored && (r.Key == "" || strings.Contains(r.Key, text)) {
			column, err := q.Column(r.Table, name)
			return err == nil && column.KeepsTexts(q.Dialect.Name) && !q.Facts(r.Table).Alters
		}
	}
	return false
}
