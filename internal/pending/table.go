package pending

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/sqlerr"
)

//go:embed schema
var schemas embed.FS

const table = "belay_pending"

// Migrate creates the table if it does not exist.
func Migrate(ctx context.Context, db sqldb.DB) error {
	if err := db.Migrate(ctx, db.Schema(schemas)); err != nil {
		return fmt.Errorf("create table %s: %w", table, err)
	}
	return nil
}

// Check returns an error unless the table is there, with all its columns, can be read, keeps the
// rows of requests apart, and takes part in transactions.
func Check(ctx context.Context, db sqldb.DB) error {
	const query = `SELECT request, attempt, print, operation, since_ms, lease_ms, until_ms, tries, answered, "body" FROM belay_pending WHERE 1 = 0`
	if err := db.Query(ctx, query, nil, func(sqldb.Scan) error { return nil }); err != nil {
		return fmt.Errorf("check table %s: %w", table, Explain(err))
	}
	return db.Read(ctx, func(c sqldb.Conn) error {
		in := catalogue.Source{Dialect: db.Name, Conn: c}
		indexes, err := in.Indexes(ctx, table)
		if err != nil {
			return err
		}
		if !catalogue.IsUnique(indexes, []string{"request"}) {
			return fmt.Errorf("table %s has no unique index on (request) alone%s: make it the primary key", table, catalogue.Unusable(indexes))
		}
		facts, err := in.Facts(ctx, table)
		if err == nil && !facts.Transactional {
			err = fmt.Errorf("the engine of table %s has no transactions: ALTER TABLE %s ENGINE = InnoDB", table, table)
		}
		return err
	})
}

// A Listed is a row as people see it.
type Listed struct {
	Request     []byte
	Operation   string
	Since, Last time.Time
	Tries       int
	Attempt     int64 // by List only
	Answered    bool
	Calling     bool // the lease has not ended
	Undecided   bool // nobody calls any more, and there is no result
}

// List returns the oldest rows, at most limit.
func List(ctx context.Context, db sqldb.DB, limit int) (rows []Listed, err error) {
	now := db.Now(time.Millisecond)
	query := "SELECT request, operation, attempt, since_ms, lease_ms, until_ms, tries, answered, " + now + " FROM belay_pending ORDER BY since_ms, request LIMIT ?"
	err = committed(ctx, db, query, []any{limit}, func(scan sqldb.Scan) error {
		var r Listed
		var since, lease, until, at int64
		var answered int
		if err := scan(&r.Request, &r.Operation, &r.Attempt, &since, &lease, &until, &r.Tries, &answered, &at); err != nil {
			return err
		}
		r.Since, r.Last = time.UnixMilli(since), time.UnixMilli(until)
		r.Answered, r.Calling = answered != open, lease > at
		r.Undecided = !r.Answered && !r.Calling && until <= at
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list what is pending: %w", Explain(err))
	}
	return rows, nil
}

// Explain adds to the error of a database that has no table how to create it. It returns other
// errors, and nil, as they are.
func Explain(err error) error {
	if err == nil || errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), table) {
		return err
	}
	switch {
	case sqlerr.IsMySQL(err, 1146), sqlerr.IsPostgres(err, "42P01"):
	case sqlerr.IsSQLite(err, 1) && strings.Contains(err.Error(), "no such table"):
	default:
		return err
	}
	return fmt.Errorf("the table %s is missing: call once.MigrateCalls, or set Calls in belay.Config: %w", table, err)
}
