package pgxguard

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/belaygo/belay/internal/dbtx/pinned"
)

// rows are the rows of a query. The error that comes with them is judged when they are closed.
type rows struct {
	s      *session
	sent   *pinned.Raw
	in     pgx.Rows // nil if there are none
	unread bool     // the program could not read a row: pgx keeps that error, and none behind it
	closed atomic.Bool
	err    error  // once they are closed
	batch  *batch // of which the query is, nil if it is of none
}

// failed returns rows of a query that has failed.
func failed(err error) *rows {
	r := &rows{err: err}
	r.closed.Store(true)
	return r
}

// Next implements pgx.Rows.
func (r *rows) Next() (more bool) {
	err := r.do(func() { more = r.in.Next() })
	if err != nil || !more {
		r.Close()
		return false
	}
	return true
}

// do calls the driver, unless the rows are closed.
func (r *rows) do(f func()) error {
	if r.closed.Load() {
		return r.err
	}
	return r.s.t.Conn().Driver(func(driver.Conn) error {
		if !r.closed.Load() {
			f()
		}
		return nil
	})
}

// Close implements pgx.Rows.
func (r *rows) Close() {
	if r.closed.Swap(true) {
		return
	}
	r.s.t.Closed(r)
	err := r.s.t.Conn().Driver(func(driver.Conn) error {
		r.in.Close()
		return nil
	})
	err = cmp.Or(r.in.Err(), err)
	switch {
	case err == nil:
		r.err = r.sent.Close(r.in.CommandTag().RowsAffected(), false)
	case r.unread && r.s.stands():
		r.err = cmp.Or(r.sent.Close(r.in.CommandTag().RowsAffected(), false), err)
	case r.unread: // the server has an error that pgx keeps for itself
		_ = r.sent.Close(-1, true)
		r.s.t.Conn().Watcher.Poison(err)
		r.err = err
	default:
		_ = r.sent.Close(-1, true)
		r.err = ended(r.sent.Failed(err))
		if r.batch != nil {
			r.batch.fail(r.err)
		}
	}
}

// Err implements pgx.Rows.
func (r *rows) Err() error {
	if r.closed.Load() {
		return r.err
	}
	return r.in.Err()
}

// Scan implements pgx.Rows.
func (r *rows) Scan(dest ...any) error {
	if r.closed.Load() {
		return cmp.Or(r.err, errClosed)
	}
	err := r.in.Scan(dest...)
	r.unread = r.unread || err != nil
	return err
}

// Values implements pgx.Rows.
func (r *rows) Values() ([]any, error) {
	if r.closed.Load() {
		return nil, cmp.Or(r.err, errClosed)
	}
	values, err := r.in.Values()
	r.unread = r.unread || err != nil
	return values, err
}

var errClosed = errors.New("pgxguard: the rows are closed")

// RawValues implements pgx.Rows.
func (r *rows) RawValues() [][]byte {
	if r.closed.Load() {
		return nil
	}
	return r.in.RawValues()
}

// CommandTag implements pgx.Rows.
func (r *rows) CommandTag() (tag pgconn.CommandTag) {
	if r.in != nil {
		tag = r.in.CommandTag()
	}
	return tag
}

// FieldDescriptions implements pgx.Rows.
func (r *rows) FieldDescriptions() []pgconn.FieldDescription {
	if r.in == nil {
		return nil
	}
	return r.in.FieldDescriptions()
}

// Conn implements pgx.Rows.
func (r *rows) Conn() *pgx.Conn {
	if r.in == nil {
		return nil
	}
	return r.s.lend()
}

// TypeMap implements pgx.Rows.
func (r *rows) TypeMap() *pgtype.Map {
	if r.in == nil {
		return nil
	}
	return r.in.TypeMap()
}

// row is the first row of a query.
type row struct{ rows *rows }

// Scan implements pgx.Row.
func (r row) Scan(dest ...any) error {
	defer r.rows.Close()
	for _, d := range dest {
		if _, ok := d.(*pgtype.DriverBytes); ok {
			return errors.New("pgxguard: a *pgtype.DriverBytes does not outlive the row of QueryRow")
		}
	}
	if !r.rows.Next() {
		return cmp.Or(r.rows.Err(), pgx.ErrNoRows)
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
