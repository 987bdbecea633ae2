package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// MaxRows bounds what one call of a method that reads a list returns; its
// filters' Limit 0 means DefaultRows.
const (
	MaxRows     = 1000
	DefaultRows = 100
)

// maxCounted bounds what the counting methods count up to: more is "more".
const maxCounted = 10_000

func limit(n int) int {
	if n <= 0 {
		return DefaultRows
	}
	return min(n, MaxRows)
}

// A Page chooses rows of a list, the newest first. The zero Page is the first.
type Page struct {
	Before int64 // those with a smaller ID: the last of the page before
	Limit  int   // default DefaultRows, at most MaxRows
}

func (p Page) clause() (clause string, args []any) {
	var w where
	if p.Before > 0 {
		w.add("id < ?", p.Before)
	}
	return w.String() + " ORDER BY id DESC LIMIT ?", append(w.args, limit(p.Limit))
}

// micros is the stored form of a time, 0 for none.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// where gathers conditions and their arguments.
type where struct {
	conds []string
	args  []any
}

func (w *where) add(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

// text adds a condition unless value is empty.
func (w *where) text(cond, value string) {
	if value != "" {
		w.add(cond, value)
	}
}

// time adds a condition unless at is zero.
func (w *where) time(cond string, at time.Time) {
	if !at.IsZero() {
		w.add(cond, at.UnixMicro())
	}
}

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

// in adds a condition that column is one of values, unless there are none.
func in[T ~string](w *where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = string(v)
	}
	w.add(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

// collect reads the rows of a query, which are what. columns returns where those of
// one row go.
func collect[T any](ctx context.Context, s *Store, what string, columns func(*T) []any, query string, args ...any) (list []T, err error) {
	defer func() {
		if err != nil {
			list, err = nil, fmt.Errorf("read %s: %w", what, err)
		}
	}()
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var row T
		if err := rows.Scan(columns(&row)...); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
}

// instant scans microseconds, 0 for none.
type instant struct{ *time.Time }

func (to instant) Scan(v any) error {
	n, ok := v.(int64)
	*to.Time = fromMicros(n)
	return expect(ok, v)
}

// span scans microseconds.
type span struct{ *time.Duration }

func (to span) Scan(v any) error {
	n, ok := v.(int64)
	*to.Duration = time.Duration(n) * time.Microsecond
	return expect(ok, v)
}

// document scans JSON, and stores it.
type document struct{ to any }

func (d document) Scan(v any) error {
	text, ok := v.(string)
	return errors.Join(expect(ok, v), json.Unmarshal([]byte(text), d.to))
}

// Value implements driver.Valuer.
func (d document) Value() (driver.Value, error) {
	b, err := json.Marshal(d.to)
	return string(b), err
}

func expect(ok bool, v any) error {
	if !ok {
		return fmt.Errorf("column is %T", v)
	}
	return nil
}

// count counts rows of a table up to maxCounted.
func (s *Store) count(ctx context.Context, table string, w where) (n int, more bool, err error) {
	query := "SELECT count(*) FROM (SELECT 1 FROM " + table + w.String() + " LIMIT ?)"
	err = s.read.QueryRowContext(ctx, query, append(w.args, maxCounted+1)...).Scan(&n)
	if err != nil {
		return 0, false, fmt.Errorf("count %s: %w", table, err)
	}
	return min(n, maxCounted), n > maxCounted, nil
}

// in runs fn in a transaction of the writer, to do what.
func (s *Store) in(ctx context.Context, what string, fn func(*sql.Tx) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	}()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// change runs a statement, to do what, and returns incident.ErrNotFound if it
// changed nothing.
func (s *Store) change(ctx context.Context, what, stmt string, args ...any) error {
	res, err := s.write.ExecContext(ctx, stmt, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return found(res)
}

// found returns incident.ErrNotFound if a statement changed nothing.
func found(res sql.Result) error {
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return incident.ErrNotFound
	}
	return err
}
