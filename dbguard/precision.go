package dbguard

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

const precisions = `SELECT column_name AS name, COALESCE(datetime_precision, 0) AS digits, data_type AS kind
	FROM information_schema.columns WHERE table_name = @name AND (datetime_precision IS NOT NULL OR data_type = 'date')
	AND table_schema = COALESCE(NULLIF(@schema, ''), `

// wholeDay stands for the digits of a DATE.
const wholeDay = -1

// roundTimes finds out how the database stores the times in a row's key: with
// the digits that their columns have, cut off on MariaDB and else rounded, or as
// days. By others it would not be found again.
func (t *Tx) roundTimes(r *protectedRow) error {
	r.stored = nil
	for i, v := range r.values {
		at, ok := indirect(v).(time.Time)
		if !ok || t.dialect.name == "sqlite" {
			continue
		}
		digits, err := t.digits(r.table, r.fields[i].DBName)
		if err != nil {
			return err
		}
		if r.stored == nil {
			r.stored = append([]any(nil), r.values...)
		}
		unit := time.Second
		for range max(0, digits) {
			unit /= 10
		}
		switch {
		case digits == wholeDay:
			r.stored[i] = day{at, t.dialect.name == "mysql"}
		case t.conn.session.mariaDB:
			r.stored[i] = at.Truncate(unit)
		case t.dialect.name == "postgres": // its driver sends no more than microseconds
			r.stored[i] = at.Truncate(time.Microsecond).Round(unit)
		default:
			r.stored[i] = at.Round(unit)
		}
	}
	return nil
}

// day is a time in a DATE column. Which day it is the server tells: that depends
// on the driver's time zone, and on how the server rounds.
type day struct {
	time.Time
	mysql bool
}

// Build implements clause.Expression. MySQL rounds a time that it stores to the
// second first, but not one that it casts.
func (d day) Build(b clause.Builder) {
	before, behind := "CAST(", " AS DATE)"
	if d.mysql {
		before, behind = "CAST(CAST(", " AS DATETIME) AS DATE)"
	}
	_, _ = b.WriteString(before)
	b.AddVar(b, d.Time)
	_, _ = b.WriteString(behind)
}

// is reports whether a time that was read from the column is that day.
func (d day) is(t time.Time) bool {
	return t.Format(time.DateOnly) == d.In(t.Location()).Format(time.DateOnly)
}

// digits returns how many digits of a second a column has, or wholeDay.
func (t *Tx) digits(table, column string) (int, error) {
	known, ok := t.plugin.digits.Load(table)
	if !ok {
		read, err := t.readDigits(t.ctx, table)
		if err != nil {
			return 0, fmt.Errorf("read columns of %s: %w", table, err)
		}
		known, _ = t.plugin.digits.LoadOrStore(table, read)
	}
	if n, ok := known.(map[string]int)[strings.ToLower(column)]; ok {
		return n, nil
	}
	return 6, nil
}

func (t *Tx) readDigits(ctx context.Context, table string) (map[string]int, error) {
	current := "DATABASE())"
	if t.dialect.name == "postgres" {
		current = "current_schema())"
	}
	var rows []struct {
		Name   string
		Digits int
		Kind   string
	}
	s := t.db.Session(&gorm.Session{NewDB: true, Context: ctx, SkipHooks: true})
	if err := s.Raw(precisions+current, nameOf(table)).Scan(&rows).Error; err != nil {
		return nil, err
	}
	digits := make(map[string]int, len(rows))
	for _, r := range rows {
		if strings.EqualFold(r.Kind, "date") {
			r.Digits = wholeDay
		}
		digits[strings.ToLower(r.Name)] = r.Digits
	}
	return digits, nil
}
