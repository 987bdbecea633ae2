package pgxguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
	"github.com/belaygo/belay/internal/sqlfront"
)

// A session is the connection of an operation, as pgx has it.
type session struct {
	t        *sqlfront.Transaction
	conn     *pgx.Conn
	prepared map[string]string // by their names
	whole    *tx
}

func newSession(t *sqlfront.Transaction) (*session, error) {
	s := &session{t: t, prepared: make(map[string]string)}
	err := t.Conn().Driver(func(dc driver.Conn) error {
		c, ok := unwrap(dc).(*stdlib.Conn)
		if !ok {
			return errOtherDriver
		}
		s.conn = c.Conn()
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.whole = &tx{s: s}
	return s, nil
}

// lend returns the connection for the program, which may then send what Belay does not see.
func (s *session) lend() *pgx.Conn {
	s.t.Conn().Lend()
	return s.conn
}

// unwrap returns the driver's connection below those that wrap it, such as otelsql's.
func unwrap(c driver.Conn) driver.Conn {
	for {
		wrapped, ok := c.(interface{ Raw() driver.Conn })
		if !ok {
			return c
		}
		c = wrapped.Raw()
	}
}

// A query is what pgx is to send, and what is judged.
type query struct {
	sql  string // or the name of a prepared statement
	args []any  // with the options of pgx before them
	text string
	vals []driver.NamedValue
}

// read returns the query of a call. Its rewriter has done its work then, such as that of named
// arguments.
func (s *session) read(ctx context.Context, text string, args []any) (q query, err error) {
	var options []any
	var rewriter pgx.QueryRewriter
options:
	for len(args) > 0 {
		switch arg := args[0].(type) {
		case pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryExecMode:
			options = append(options, arg)
		case pgx.QueryRewriter:
			rewriter = arg
		default:
			break options
		}
		args = args[1:]
	}
	if rewriter != nil {
		s.t.Conn().Use() // the rewriter may use the connection
		if text, args, err = rewriter.RewriteQuery(ctx, s.conn, text, args); err != nil {
			return query{}, fmt.Errorf("rewrite query: %w", err)
		}
	}
	q = query{sql: text, args: append(options, args...), text: text, vals: make([]driver.NamedValue, len(args))}
	if known, ok := s.prepared[text]; ok {
		q.text = known
	} else if isName(text) {
		q.text = "EXECUTE " + text
	}
	for i, arg := range args {
		q.vals[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return q, nil
}

// isName reports whether a text is the name of a statement which was prepared elsewhere, as in
// AfterConnect of the pool: one word that is no statement itself. What it does is not known.
func isName(text string) bool {
	statements := sqltext.Split(text, sqltext.Postgres) // as it is split again, and remembered, when it is sent
	return len(statements) == 1 && len(statements[0].Words()) == 1 && !statements[0].Controls()
}

// Check implements sqlfront.Other. It returns an error if the transaction was ended by the Conn.
func (s *session) Check() error {
	if s.conn.PgConn().TxStatus() != 'I' || s.conn.IsClosed() || s.t.Ending() {
		return nil
	}
	err := fmt.Errorf("%w: the transaction was ended by its Conn", pinned.ErrTxControl)
	s.t.Conn().Watcher.Poison(err)
	return err
}

// stands reports whether the server goes on with the transaction.
func (s *session) stands() bool { return s.conn.PgConn().TxStatus() == 'T' && !s.conn.IsClosed() }

// send sends a query, and has it judged unless rows are open then.
func (s *session) send(ctx context.Context, in *sqlfront.Savepoint, q query, send func(ctx context.Context) (affected int64, rows bool, err error)) (*pinned.Raw, error) {
	if err := s.Check(); err != nil { // what follows would be committed alone
		return nil, err
	}
	raw, err := s.t.Send(ctx, in, q.text, q.vals, func(ctx context.Context, _ driver.Conn) (int64, bool, error) { return send(ctx) })
	return raw, ended(err)
}

// ended makes the error of a transaction that has ended one that pgx's users know.
func ended(err error) error {
	if errors.Is(err, sql.ErrTxDone) && !errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: %w", pgx.ErrTxClosed, err)
	}
	return err
}
