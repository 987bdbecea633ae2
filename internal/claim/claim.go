// Package claim is the rows of a request that has taken effect, in belay_once and
// belay_answer.
package claim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/pgsync"
	"github.com/belaygo/belay/internal/sqldb"
)

// A Claim is a row of belay_once: gorm's model of it. Its stamp says whose claim it is, so
// that its presence proves the COMMIT.
type Claim struct {
	Request   []byte        `gorm:"column:request;primaryKey"` // whatever the program's gorm.Config names columns
	Attempt   dbguard.Stamp `gorm:"column:attempt"`
	Print     []byte        `gorm:"column:print"`
	Held      int64         `gorm:"column:held"`
	Operation string        `gorm:"column:operation"`
}

// TableName implements gorm's schema.Tabler.
func (Claim) TableName() string { return "belay_once" }

// Beside returns the tables that have at most one row of a request, too.
func (Claim) Beside() []string { return []string{"belay_answer"} }

// An Answer is what is kept of an operation's result.
type Answer struct {
	Refused bool
	Codec   string
	Body    []byte
}

// A Record is what is known of a request that has taken effect.
type Record struct {
	Print  []byte
	Held   int64
	Answer *Answer // nil if none was kept, or it is kept no longer
}

// Refused reports whether the operation has refused the request: nothing but the answer was kept.
func (r *Record) Refused() bool { return r != nil && r.Answer != nil && r.Answer.Refused }

// querier is a *sql.Conn or a *sql.Tx.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// execer is what takes a statement in a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Insert stores the answer of a request, in the transaction of its claim.
func Insert(ctx context.Context, q execer, database string, request []byte, a Answer) error {
	refused := 0
	if a.Refused {
		refused = 1
	}
	body := a.Body
	if body == nil {
		body = []byte{} // not NULL
	}
	d, _ := sqldb.Of(database)
	_, err := q.ExecContext(ctx, d.Rebind(`INSERT INTO belay_answer (request, refused, codec, "body") VALUES (?, ?, ?, ?)`),
		request, refused, a.Codec, body)
	if err != nil {
		return fmt.Errorf("store the answer: %w", Explain(err))
	}
	return nil
}

// Find returns what is known of a request, nil if it has not taken effect. It reads in a
// transaction: a proxy may send a read outside of one to a replica that is behind. Whatever
// the isolation level of the session is, it reads what is committed: at READ UNCOMMITTED MySQL and
// MariaDB would show the claim of an operation that still runs, and may fail. With an error it
// returns a record that a failover may lose. It ends with ctx.
func Find(ctx context.Context, pool *sql.DB, database string, request []byte) (r *Record, err error) {
	d, _ := sqldb.Of(database)
	err = sqldb.New(pool, d).ReadCommitted().Read(ctx, func(c sqldb.Conn) (err error) {
		if r, err = read(ctx, c, request); r == nil || !d.Standby {
			return err
		}
		waits, err := pgsync.Barrier(ctx, c)
		if waits && err == nil {
			_, err = c.ExecContext(ctx, "COMMIT")
		}
		return err
	})
	switch {
	case err == nil:
		return r, nil
	case r == nil:
		return nil, fmt.Errorf("read the claim: %w", Explain(err))
	}
	return r, fmt.Errorf("wait for the standby to have the claim: %w", err)
}

func read(ctx context.Context, c sqldb.Conn, request []byte) (*Record, error) {
	var r Record
	var refused sql.NullInt64
	var codec sql.NullString
	var body []byte
	err := c.QueryRowContext(ctx, `SELECT c.print, c.held, a.refused, a.codec, a.body
		FROM belay_once c LEFT JOIN belay_answer a ON a.request = c.request WHERE c.request = ?`, request).
		Scan(&r.Print, &r.Held, &refused, &codec, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if refused.Valid {
		r.Answer = &Answer{Refused: refused.Int64 != 0, Codec: codec.String, Body: body}
	}
	return &r, nil
}
