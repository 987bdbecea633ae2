// Package pending is the rows of requests in belay_pending: an operation has made its reservation,
// and the outcome of its call to another service is not settled. package guard has the order of the
// steps, and internal/model/call the reasons for it.
package pending

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/sqldb"
)

// A Row is a new row of belay_pending: gorm's model of it. Its stamp is the attempt, so that its
// presence proves the COMMIT of the reservation. Without the times, which Start sets, nobody may call.
type Row struct {
	Request   []byte        `gorm:"column:request;primaryKey"`
	Attempt   dbguard.Stamp `gorm:"column:attempt"`
	Print     []byte        `gorm:"column:print"`
	Operation string        `gorm:"column:operation"`
}

// TableName implements gorm's schema.Tabler.
func (Row) TableName() string { return "belay_pending" }

// A Result is what the other service has answered.
type Result struct {
	Refused bool
	Body    []byte // the answer, as JSON
}

// A State is what is stored of a request, with times relative to the read.
type State struct {
	Attempt     int64
	Print       []byte
	Lease       time.Duration // that is left of it
	Until       time.Duration // that is left for calls to begin
	Since, Last time.Time     // of the reservation, and when Until ends, by the database's clock
	Tries       int
	Result      *Result // nil: the outcome is open
}

// querier is a connection within a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

const (
	open = iota
	accepted
	refused
)

func (r Result) code() int {
	if r.Refused {
		return refused
	}
	return accepted
}

// Find returns the state of a request, nil if nothing is pending. It reads what is committed, in a
// transaction of its own.
func Find(ctx context.Context, db sqldb.DB, request []byte) (*State, error) {
	var s State
	var now, since, lease, until int64
	var answered int
	var body []byte
	err := db.ReadCommitted().Read(ctx, func(c sqldb.Conn) error {
		query := `SELECT attempt, print, since_ms, lease_ms, until_ms, tries, answered, "body", ` + db.Now(time.Millisecond) +
			" FROM belay_pending WHERE request = ?"
		return c.QueryRowContext(ctx, query, request).Scan(&s.Attempt, &s.Print, &since, &lease, &until, &s.Tries, &answered, &body, &now)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is pending: %w", Explain(err))
	}
	s.Lease, s.Until = millis(lease-now), millis(until-now)
	s.Since, s.Last = time.UnixMilli(since), time.UnixMilli(until)
	if answered != open {
		s.Result = &Result{Refused: answered == refused, Body: body}
	}
	return &s, nil
}

// Has reports whether a request is pending, in the transaction of a connection.
func Has(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, request []byte) (found bool, err error) {
	query := d.Rebind("SELECT request FROM belay_pending WHERE request = ?")
	err = sqldb.Query(ctx, c, query, []any{request}, func(scan sqldb.Scan) error {
		found = true
		return scan(&request)
	})
	if err != nil {
		return false, fmt.Errorf("look for what is pending: %w", Explain(err))
	}
	return found, nil
}

// Awaits reports whether an attempt has the row of a request and waits for its result, in the transaction
// of a connection.
func Awaits(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, request []byte, mine int64) (found bool, err error) {
	query := d.Rebind("SELECT request FROM belay_pending WHERE request = ? AND attempt = ? AND answered = 0")
	err = sqldb.Query(ctx, c, query, []any{request, mine}, func(scan sqldb.Scan) error {
		found = true
		return scan(&request)
	})
	if err != nil {
		return false, fmt.Errorf("look for the call: %w", Explain(err))
	}
	return found, nil
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Start sets the times of a new row, in its transaction: the lease, and how long calls may begin.
func Start(ctx context.Context, q querier, d sqldb.Dialect, request []byte, lease, until time.Duration) error {
	now := d.Now(time.Millisecond)
	query := "UPDATE belay_pending SET since_ms = " + now + ", lease_ms = " + now + " + ?, until_ms = " + now + " + ?, tries = 1 WHERE request = ?"
	return one(q.ExecContext(ctx, d.Rebind(query), lease.Milliseconds(), until.Milliseconds(), request))
}

// Vacant returns an error if a table has a row of the request: it inserts one and deletes it. The
// INSERT decides at every isolation level, while a read may be of an old snapshot. table is
// belay_once or belay_pending. After an error the transaction is to be rolled back.
func Vacant(ctx context.Context, q querier, d sqldb.Dialect, table string, r *Row) error {
	columns, values := "request, attempt, print, operation", "?, ?, ?, ?"
	if table == "belay_once" {
		columns, values = columns+", held", values+", 0"
	}
	_, err := q.ExecContext(ctx, d.Rebind("INSERT INTO "+table+" ("+columns+") VALUES ("+values+")"), r.Request, int64(r.Attempt), r.Print, r.Operation)
	if err == nil {
		err = one(q.ExecContext(ctx, d.Rebind("DELETE FROM "+table+" WHERE request = ?"), r.Request))
	}
	if err != nil {
		return fmt.Errorf("look for the request in %s: %w", table, Explain(err))
	}
	return nil
}

// ErrTaken is returned if another attempt has the row, or nobody.
var ErrTaken = errors.New("another attempt has taken the request over")

// one returns ErrTaken unless a statement has changed one row.
func one(res sql.Result, err error) error {
	if err != nil {
		return Explain(err)
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		err = ErrTaken
	}
	return err
}

// TakeOver gives a row to the attempt mine, if it is still that of the attempt seen, nobody may be
// calling, and calls may begin. Otherwise the error is ErrTaken.
func TakeOver(ctx context.Context, db sqldb.DB, request []byte, seen, mine int64, lease time.Duration) error {
	now := db.Now(time.Millisecond)
	query := "UPDATE belay_pending SET attempt = ?, lease_ms = " + now + " + ?, tries = tries + 1 " +
		"WHERE request = ? AND attempt = ? AND answered = 0 AND lease_ms <= " + now + " AND until_ms > " + now
	return one(db.ReadCommitted().Exec(ctx, query, mine, lease.Milliseconds(), request, seen))
}

// GiveBack ends the lease of an attempt whose call has returned.
func GiveBack(ctx context.Context, db sqldb.DB, request []byte, mine int64) error {
	return one(db.ReadCommitted().Exec(ctx, "UPDATE belay_pending SET lease_ms = 0 WHERE request = ? AND attempt = ? AND answered = 0 AND lease_ms <> 0", request, mine))
}

// Store stores the result of an attempt's call. From then on nobody calls.
func Store(ctx context.Context, db sqldb.DB, request []byte, mine int64, r Result) error {
	err := one(db.ReadCommitted().Exec(ctx, `UPDATE belay_pending SET answered = ?, "body" = ? WHERE request = ? AND attempt = ? AND answered = 0`,
		r.code(), r.Body, request, mine))
	if err != nil {
		return fmt.Errorf("store the result: %w", err)
	}
	return nil
}

// Settle deletes the row of an attempt, in the transaction that settles its result.
func Settle(ctx context.Context, q querier, d sqldb.Dialect, request []byte, mine int64) error {
	return one(q.ExecContext(ctx, d.Rebind("DELETE FROM belay_pending WHERE request = ? AND attempt = ?"), request, mine))
}
