// Package pgsync has the statements that wait for the synchronous standby of a PostgreSQL.
//
// A primary shows a commit to others only after its standby has it, with two exceptions: a
// COMMIT that is cancelled, or whose session is ended, while it waits for the standby, and
// one that a restarted primary finds in its own log. A promotion loses such a row, though
// others have seen it.
package pgsync

import (
	"context"
	"database/sql"

	"github.com/belaygo/belay/internal/sqlerr"
)

// Message logs a message. Its COMMIT is acknowledged after the standby has that, and all
// earlier ones.
const Message = "SELECT pg_logical_emit_message(true, 'belay', '')"

// waits asks whether commits wait for a standby.
const waits = "SELECT coalesce(current_setting('synchronous_standby_names', true), '') <> '' AND NOT pg_is_in_recovery()"

// Barrier logs a message in a transaction if commits wait for a standby, and reports whether
// they do. The COMMIT waits then until what was read before is as safe as an acknowledged
// commit. After false the transaction may take no more statements: where the server only
// resembles PostgreSQL, it knows no such setting.
func Barrier(ctx context.Context, q interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (bool, error) {
	var wait bool
	err := q.QueryRowContext(ctx, waits).Scan(&wait)
	switch {
	case sqlerr.IsPostgres(err, "42", "0A"): // undefined, or not supported
		return false, nil
	case err != nil || !wait:
		return false, err
	}
	_, err = q.ExecContext(ctx, Message)
	return true, err
}
