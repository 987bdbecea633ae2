package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/pgsync"
	"github.com/belaygo/belay/internal/sqldb"
)

//go:embed schema
var schemas embed.FS

const (
	// longest is how far off a retry_at or leased_until can be. What is further
	// off comes from before the database's clock was set back.
	longest = time.Hour
	// maxCounted bounds the work of counting the backlog.
	maxCounted = 100_000
)

// A table is belay_outbox in one database.
type table struct {
	db sqldb.DB
	// locking ends the selection of rows to lease. Only the relay uses it.
	locking *string
}

// A row is one stored event. Its id says only where the row is: after a failover
// to a replica that lacks the last rows, MySQL and MariaDB give out their ids
// again, to other events.
type row struct {
	id       int64
	eventID  string
	body     []byte
	attempts int // that failed
}

func openTable(db *gorm.DB) (table, error) {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return table{}, errors.New("outbox: db is missing")
	}
	d, ok := sqldb.Of(db.Name())
	if !ok {
		return table{}, fmt.Errorf("outbox: db is %q; the outbox works on mysql, postgres and sqlite", db.Name())
	}
	if db.Statement != nil {
		if _, ok := db.Statement.ConnPool.(gorm.TxCommitter); ok {
			return table{}, errors.New("outbox: db is a transaction; give the *gorm.DB that began it")
		}
	}
	pool, err := db.DB()
	if err != nil {
		return table{}, fmt.Errorf("outbox: db has no connection pool: %w", err)
	}
	return table{db: sqldb.New(pool, d), locking: &d.SkipLocked}, nil
}

// Migrate creates the table belay_outbox if it is not there. The statements are
// in the folder schema, for those who run migrations by other means.
func Migrate(ctx context.Context, db *gorm.DB) error {
	t, err := openTable(db)
	if err != nil {
		return err
	}
	if err := t.db.Migrate(ctx, t.db.Schema(schemas)); err != nil {
		return fmt.Errorf("outbox: create table: %w", err)
	}
	return nil
}

// sql replaces {now} by the database's time, in milliseconds since 1970.
func (t table) sql(statement string) string {
	return strings.ReplaceAll(statement, "{now}", t.db.Now(time.Millisecond))
}

func (t table) exec(ctx context.Context, statement string, args ...any) error {
	_, err := t.db.Exec(ctx, t.sql(statement), args...)
	return err
}

// check reports whether the table is there, with all its columns.
func (t table) check(ctx context.Context) error {
	var none int
	err := t.db.QueryRow(ctx, `SELECT attempts FROM belay_outbox WHERE id = 0 AND retry_at = 0 AND leased_until = 0 AND "body" = ''`, nil, &none)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// insert stores events, all or none. An id that is stored already is a success, once the row
// is where a new one would be: its COMMIT may wait for a standby, on a session that was
// ended, and an insert that changes nothing waits for none. The message is in the same
// transaction: another connection of the pool may lead to a server that was promoted meanwhile.
func (t table) insert(ctx context.Context, rows ...row) error {
	args := make([]any, 0, 2*len(rows))
	for _, r := range rows {
		args = append(args, r.eventID, string(r.body))
	}
	statement := `INSERT INTO belay_outbox (event_id, "body") VALUES ` + sqldb.List("(?, ?)", ", ", len(rows)) + " " + t.db.Ignore("event_id")
	if !t.db.Standby {
		return t.exec(ctx, statement, args...)
	}
	return t.db.InTx(ctx, func(c sqldb.Conn) error {
		done, err := c.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == int64(len(rows)) {
			return err
		}
		_, err = c.ExecContext(ctx, pgsync.Message)
		return err
	})
}

// A claim says which rows a relay wants to have for itself.
type claim struct {
	after int64         // only rows with a higher id
	early time.Duration // also those that are due so soon: they failed lately
	limit int
	lease time.Duration
}

var (
	isLeased = fmt.Sprintf("leased_until BETWEEN {now} + 1 AND {now} + %d", longest.Milliseconds())
	isPaused = fmt.Sprintf("retry_at BETWEEN {now} + ? AND {now} + %d", longest.Milliseconds())
)

// lease returns rows that no other relay has, oldest first, and keeps others
// from them for a while.
func (t table) lease(ctx context.Context, c claim) (rows []row, err error) {
	from := "FROM belay_outbox WHERE id > ? AND NOT (" + isLeased + ") AND NOT (" + isPaused + ") ORDER BY id LIMIT ? " + *t.locking
	args := []any{c.after, c.early.Milliseconds() + 1, c.limit}
	if t.db.Returning {
		args = append(args, c.lease.Milliseconds())
		// In a subquery the LIMIT would not be one: PostgreSQL may run it anew for
		// each row of the table.
		err = t.db.Query(ctx, t.sql("WITH due AS MATERIALIZED (SELECT id "+from+") "+
			"UPDATE belay_outbox SET leased_until = {now} + ? WHERE id IN (SELECT id FROM due) "+
			`RETURNING id, event_id, "body", attempts`), args, appendTo(&rows))
	} else {
		rows, err = t.lockAndLease(ctx, c.lease, `SELECT id, event_id, "body", attempts `+from, args...)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	return rows, nil
}

// lockAndLease is lease in two statements. At READ COMMITTED the selection
// locks the rows that it finds and no gaps, where others insert.
func (t table) lockAndLease(ctx context.Context, lease time.Duration, selection string, args ...any) (rows []row, err error) {
	err = t.db.ReadCommitted().InTx(ctx, func(c sqldb.Conn) error {
		err := sqldb.Query(ctx, c, t.sql(selection), args, appendTo(&rows))
		var refused *mysql.MySQLError
		if errors.As(err, &refused) && refused.Number == 1064 { // a syntax error
			*t.locking = "FOR UPDATE" // before MySQL 8.0.1 and MariaDB 10.6: relays wait for each other for a moment
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]any, len(rows))
		for i, r := range rows {
			ids[i] = r.id
		}
		_, err = c.ExecContext(ctx, t.sql("UPDATE belay_outbox SET leased_until = {now} + ? WHERE id IN ("+sqldb.List("?", ", ", len(ids))+")"),
			append([]any{lease.Milliseconds()}, ids...)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// appendTo returns a function that appends a row that is read.
func appendTo(rows *[]row) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var r row
		err := scan(&r.id, &r.eventID, &r.body, &r.attempts)
		*rows = append(*rows, r)
		return err
	}
}

// these returns the condition for the given rows, and its arguments. The event
// ids exclude a row whose id was given out again. The condition is a cross
// product of the relay's own rows: at worst it matches one of their events under
// the id of another.
//
// COALESCE keeps the database from using the index on event_id, by which relays could
// deadlock: MySQL and MariaDB lock the rows in the order of the primary key, as a lease
// does. PostgreSQL locks them in the order of its plan, which without statistics is that of
// the heap. Two relays write the same rows only after a lease has expired. A deadlock
// there fails the write of one: its rows are leased again later.
func these(rows []row) (condition string, args []any) {
	marks := sqldb.List("?", ", ", len(rows))
	for _, r := range rows {
		args = append(args, r.id)
	}
	for _, r := range rows {
		args = append(args, r.eventID)
	}
	return "id IN (" + marks + ") AND COALESCE(event_id, '') IN (" + marks + ")", args
}

// release gives back rows that were leased and not tried.
func (t table) release(ctx context.Context, rows []row) error {
	condition, args := these(rows)
	return t.exec(ctx, "UPDATE belay_outbox SET leased_until = 0 WHERE "+condition, args...)
}

// postpone gives back a row that failed; no relay leases it before the delay is
// over.
func (t table) postpone(ctx context.Context, failed row, delay time.Duration) error {
	condition, args := these([]row{failed})
	return t.exec(ctx, "UPDATE belay_outbox SET leased_until = 0, attempts = attempts + 1, retry_at = {now} + ? WHERE "+condition,
		append([]any{delay.Milliseconds()}, args...)...)
}

// remove deletes rows whose events are published.
func (t table) remove(ctx context.Context, rows []row) error {
	condition, args := these(rows)
	return t.exec(ctx, "DELETE FROM belay_outbox WHERE "+condition, args...)
}

// leased reports whether some relay has rows.
func (t table) leased(ctx context.Context) (found bool, err error) {
	err = t.db.QueryRow(ctx, t.sql("SELECT EXISTS (SELECT 1 FROM belay_outbox WHERE "+isLeased+")"), nil, &found)
	return found, err
}

// count returns the number of rows, and maxCounted for all above.
func (t table) count(ctx context.Context) (n int, err error) {
	err = t.db.QueryRow(ctx, "SELECT COUNT(*) FROM (SELECT id FROM belay_outbox LIMIT ?) AS counted", []any{maxCounted}, &n)
	return n, err
}

// oldest returns when the oldest row was stored, in seconds since 1970, and 0
// without rows.
func (t table) oldest(ctx context.Context) (seconds float64, err error) {
	err = t.db.QueryRow(ctx, "SELECT "+t.db.Epoch("created_at")+" FROM belay_outbox ORDER BY id LIMIT 1", nil, &seconds)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seconds, err
}
