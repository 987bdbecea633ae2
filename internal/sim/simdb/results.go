package simdb

import (
	"database/sql/driver"
	"io"
)

// LastInsertId implements driver.Result.
func (r *result) LastInsertId() (int64, error) { return r.lastID, nil }

// RowsAffected implements driver.Result.
func (r *result) RowsAffected() (int64, error) { return r.affected, nil }

type rows struct {
	result *result
	at     int
}

func (r *rows) Columns() []string { return r.result.columns }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(into []driver.Value) error {
	if r.at == len(r.result.rows) {
		return io.EOF
	}
	for i, v := range r.result.rows[r.at] {
		into[i] = v
	}
	r.at++
	return nil
}
