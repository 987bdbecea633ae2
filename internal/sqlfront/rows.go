package sqlfront

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"reflect"
	"sync/atomic"

	"github.com/belaygo/belay/internal/dbtx/pinned"
)

// rows are the rows of a query. They have every method that a driver's may have; where the
// driver's have not, the answer is the one that database/sql gives then.
type rows struct {
	t       *Transaction
	sent    *pinned.Raw
	in      driver.Rows
	columns []string
	seen    int64
	end     error // that Next has returned
	closed  atomic.Bool
}

// query sends a query.
func (t *Transaction) query(ctx context.Context, query string, args []driver.NamedValue, send func(context.Context, driver.Conn) (driver.Rows, error)) (driver.Rows, error) {
	r := &rows{t: t}
	var err error
	r.sent, err = t.conn.Send(ctx, query, args, func(ctx context.Context, dc driver.Conn) (int64, bool, error) {
		var err error
		r.in, err = send(ctx, dc)
		return -1, err == nil, err
	})
	if err != nil {
		return nil, err
	}
	t.Opened(r, func() { _ = r.Close() })
	return r, nil
}

// Columns implements driver.Rows.
func (r *rows) Columns() []string {
	if r.columns == nil {
		r.ask(func() { r.columns = r.in.Columns() })
	}
	return r.columns
}

// Next implements driver.Rows. An error that comes with the rows is judged as that of the
// statement.
func (r *rows) Next(dest []driver.Value) error {
	err := r.t.conn.Driver(func(driver.Conn) error {
		if r.closed.Load() {
			return sql.ErrTxDone // by the end of the operation
		}
		return r.in.Next(dest)
	})
	if err == nil {
		r.seen++
		return nil
	}
	return r.failed(err)
}

// failed notes the end of the rows. They are closed before a judge reads on their connection.
func (r *rows) failed(err error) error {
	if err == nil || err == io.EOF || r.end != nil { //nolint:errorlint // the protocol's own value
		r.end = err
		return err
	}
	r.end = err
	_ = r.Close()
	return r.sent.Failed(err)
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	r.t.Closed(r)
	err := r.t.conn.Driver(func(driver.Conn) error { return r.in.Close() })
	seen := r.seen
	if seen == 0 && r.end == nil {
		seen = -1 // there may be some
	}
	failed := err != nil || r.end != nil && r.end != io.EOF //nolint:errorlint // the protocol's own value
	if judged := r.sent.Close(seen, failed); judged != nil {
		return judged
	}
	if err != nil && r.end == nil {
		r.end = err
		return r.sent.Failed(err)
	}
	return err
}

// HasNextResultSet implements driver.RowsNextResultSet.
func (r *rows) HasNextResultSet() (more bool) {
	if n, ok := r.in.(driver.RowsNextResultSet); ok {
		r.ask(func() { more = n.HasNextResultSet() })
	}
	return more
}

// NextResultSet implements driver.RowsNextResultSet.
func (r *rows) NextResultSet() error {
	n, ok := r.in.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	r.columns = nil
	return r.failed(r.t.conn.Driver(func(driver.Conn) error { return n.NextResultSet() }))
}

// ColumnTypeScanType implements driver.RowsColumnTypeScanType.
func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	t := reflect.TypeFor[any]()
	if c, ok := r.in.(driver.RowsColumnTypeScanType); ok {
		r.ask(func() { t = c.ColumnTypeScanType(i) })
	}
	return t
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *rows) ColumnTypeDatabaseTypeName(i int) (name string) {
	if c, ok := r.in.(driver.RowsColumnTypeDatabaseTypeName); ok {
		r.ask(func() { name = c.ColumnTypeDatabaseTypeName(i) })
	}
	return name
}

// ColumnTypeLength implements driver.RowsColumnTypeLength.
func (r *rows) ColumnTypeLength(i int) (n int64, ok bool) {
	if c, is := r.in.(driver.RowsColumnTypeLength); is {
		r.ask(func() { n, ok = c.ColumnTypeLength(i) })
	}
	return n, ok
}

// ColumnTypeNullable implements driver.RowsColumnTypeNullable.
func (r *rows) ColumnTypeNullable(i int) (null, ok bool) {
	if c, is := r.in.(driver.RowsColumnTypeNullable); is {
		r.ask(func() { null, ok = c.ColumnTypeNullable(i) })
	}
	return null, ok
}

// ColumnTypePrecisionScale implements driver.RowsColumnTypePrecisionScale.
func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if c, is := r.in.(driver.RowsColumnTypePrecisionScale); is {
		r.ask(func() { precision, scale, ok = c.ColumnTypePrecisionScale(i) })
	}
	return precision, scale, ok
}

// ask calls the driver for something that can't fail.
func (r *rows) ask(f func()) {
	_ = r.t.conn.Driver(func(driver.Conn) error {
		f()
		return nil
	})
}
