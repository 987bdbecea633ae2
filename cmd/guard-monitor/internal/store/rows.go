package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
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

// collect runs a query and scans its rows.
func collect[T any](ctx context.Context, db *sql.DB, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// scanner is a row of a query.
type scanner interface{ Scan(dest ...any) error }

// count counts rows of a table up to maxCounted.
func (s *Store) count(ctx context.Context, table string, w where) (n int, more bool, err error) {
	query := "SELECT count(*) FROM (SELECT 1 FROM " + table + w.String() + " LIMIT ?)"
	err = s.read.QueryRowContext(ctx, query, append(w.args, maxCounted+1)...).Scan(&n)
	if err != nil {
		return 0, false, fmt.Errorf("count %s: %w", table, err)
	}
	return min(n, maxCounted), n > maxCounted, nil
}

// encode is the stored form of a list or a map.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// in runs fn in a transaction of the writer.
func (s *Store) in(ctx context.Context, fn func(*sql.Tx) error) error {
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
