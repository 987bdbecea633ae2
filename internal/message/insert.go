package message

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
)

// Bounds of one INSERT.
const (
	maxRows  = 500
	maxBytes = 2 << 20 // servers take packets of 4 MiB at least
)

// An Execer takes statements within a transaction: a *sql.Conn, a *sql.Tx, or a sqldb.Conn.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Insert stores messages in the transaction of c, in their order. A message whose id is in the
// table already is skipped, and is no error: it is on its way. An error matches ErrInvalid if a
// row cannot be stored, or two rows have one id; nothing was sent to the database then.
func Insert(ctx context.Context, c Execer, d sqldb.Dialect, rows []Row) error {
	headers := make([]string, len(rows))
	ids := make(map[string]bool, len(rows))
	for n, r := range rows {
		var err error
		if headers[n], err = r.encode(); err != nil {
			return err
		}
		if ids[r.MessageID] {
			return fmt.Errorf("%w: two messages have the id %q", ErrInvalid, r.MessageID)
		}
		ids[r.MessageID] = true
	}
	for len(rows) > 0 {
		n := chunk(rows, headers)
		if err := insert(ctx, c, d, rows[:n], headers[:n]); err != nil {
			return fmt.Errorf("store messages: %w", Explain(err))
		}
		rows, headers = rows[n:], headers[n:]
	}
	return nil
}

// chunk returns how many of the rows share an INSERT.
func chunk(rows []Row, headers []string) int {
	size := 0
	for n, r := range rows {
		if size += len(r.Body) + len(r.Key) + len(headers[n]); n > 0 && (n == maxRows || size > maxBytes) {
			return n
		}
	}
	return len(rows)
}

// insert does not use the keyword IGNORE of MySQL, which would also hide a value that is cut or
// missing.
func insert(ctx context.Context, c Execer, d sqldb.Dialect, rows []Row, headers []string) error {
	const columns = 7
	args := make([]any, 0, columns*len(rows))
	for n, r := range rows {
		sum := r.Sum()
		args = append(args, sum.Lane(), r.MessageID, sum[:], notNull([]byte(r.Key)), r.Topic, headers[n], notNull(r.Body))
	}
	values := "(" + strings.Repeat("?, ", columns) + d.Now(time.Millisecond) + ")"
	_, err := c.ExecContext(ctx, d.Rebind(`INSERT INTO belay_message (lane, message_id, key_sum, message_key, topic, headers, "body", created_at) VALUES `+
		sqldb.List(values, ", ", len(rows))+" "+d.Ignore("message_id")), args...)
	return err
}

// notNull returns b, and no bytes for nil, which is NULL to the database.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
