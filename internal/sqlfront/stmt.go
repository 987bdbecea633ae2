package sqlfront

import (
	"context"
	"database/sql/driver"
	"errors"
)

// stmt is a prepared statement on the operation's connection.
type stmt struct {
	c       *conn
	query   string
	in      driver.Stmt
	inputs  int
	checker driver.NamedValueChecker
	convert driver.ColumnConverter //nolint:staticcheck // drivers have it
}

// prepare prepares a statement. Its caller has the turn.
func prepare(ctx context.Context, c *conn, query string) (*stmt, error) {
	s := &stmt{c: c, query: query}
	err := c.t.conn.Driver(func(dc driver.Conn) (err error) {
		if d, ok := dc.(driver.ConnPrepareContext); ok {
			s.in, err = d.PrepareContext(ctx, query)
		} else {
			s.in, err = dc.Prepare(query)
		}
		if err != nil {
			return err
		}
		s.inputs = s.in.NumInput()
		s.checker, _ = s.in.(driver.NamedValueChecker)
		s.convert, _ = s.in.(driver.ColumnConverter) //nolint:staticcheck // drivers have it
		return nil
	})
	if err != nil {
		c.t.conn.Watcher.Learn(err)
		return nil, err
	}
	return s, nil
}

// NumInput implements driver.Stmt.
func (s *stmt) NumInput() int { return s.inputs }

// Close implements driver.Stmt.
func (s *stmt) Close() error {
	return s.c.t.conn.Driver(func(driver.Conn) error { return s.in.Close() })
}

var errNoContext = errors.New("dbguard: a statement without a context")

// Exec implements driver.Stmt. database/sql calls ExecContext.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }

// Query implements driver.Stmt. database/sql calls QueryContext.
func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errNoContext }

// CheckNamedValue implements driver.NamedValueChecker: the statement decides, or else the
// connection, or else the statement's converter. stmt has no converter itself: database/sql
// would then leave values as they are where the number of inputs is not known.
func (s *stmt) CheckNamedValue(nv *driver.NamedValue) (err error) {
	defer s.c.recovered(&err)
	if s.checker != nil {
		err = s.c.t.conn.Driver(func(driver.Conn) error { return s.checker.CheckNamedValue(nv) })
	} else {
		err = s.c.check(nv)
	}
	if err != driver.ErrSkip { //nolint:errorlint // the protocol's own value
		return err
	}
	v, err := driver.DefaultParameterConverter.ConvertValue(nv.Value)
	column := nv.Ordinal - 1
	if err != nil || s.convert == nil || s.inputs <= column {
		nv.Value = v
		return err
	}
	return s.c.t.conn.Driver(func(driver.Conn) (err error) {
		nv.Value, err = s.convert.ColumnConverter(column).ConvertValue(v)
		return err
	})
}

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.c.t.Innermost(s.c.save); err != nil {
		return nil, err
	}
	return s.exec(ctx, args)
}

func (s *stmt) exec(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	defer s.c.recovered(&err)
	_, err = s.c.t.conn.Send(ctx, s.query, args, func(ctx context.Context, _ driver.Conn) (int64, bool, error) {
		if d, ok := s.in.(driver.StmtExecContext); ok {
			res, err = d.ExecContext(ctx, args)
			return affected(res, err), false, err
		}
		values, err := unnamed(ctx, args)
		if err != nil {
			return -1, false, err
		}
		res, err = s.in.Exec(values) //nolint:staticcheck // old drivers
		return affected(res, err), false, err
	})
	return res, err
}

// QueryContext implements driver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (_ driver.Rows, err error) {
	if err := s.c.t.Innermost(s.c.save); err != nil {
		return nil, err
	}
	defer s.c.recovered(&err)
	return s.c.t.query(ctx, s.query, args, func(ctx context.Context, _ driver.Conn) (driver.Rows, error) {
		if d, ok := s.in.(driver.StmtQueryContext); ok {
			return d.QueryContext(ctx, args)
		}
		values, err := unnamed(ctx, args)
		if err != nil {
			return nil, err
		}
		return s.in.Query(values) //nolint:staticcheck // old drivers
	})
}
