package relay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
)

const (
	// maxCount bounds the numbers of a Backlog.
	maxCount = 10_000
	// maxPassed bounds the messages behind dead letters that the search for the oldest one passes.
	maxPassed = 10_000
)

// A Backlog says which messages wait in the tables. Its numbers are 10,000 at most, and its ages are
// by the database's clock.
type Backlog struct {
	// Table names the table of messages, with its database.
	Table string
	// Waiting is how many messages are in the table.
	Waiting int
	// Oldest is the age of the oldest message whose key has no dead letter, 0 if there is none. If the
	// 10,000 oldest messages of all wait for dead letters, it is the age of the last of these: the
	// oldest other one is no older, and there may be none.
	Oldest time.Duration
	// Parked is how many keys wait, since a message of them was not accepted.
	Parked int
	// Dead is how many messages are dead letters.
	Dead int
	// Undecided is how many of the dead letters may have taken effect.
	Undecided int
	// OldestDead is how long ago the first of the dead letters became one.
	OldestDead time.Duration
}

// Count counts the messages that wait. It reads at most 10,000 entries of an index for each number, so it is
// cheap, however many messages wait.
func Count(ctx context.Context, db *gorm.DB) (Backlog, error) {
	base, err := message.Open(db, "relay")
	if err != nil {
		return Backlog{}, err
	}
	b, err := table{db: base}.backlog(ctx)
	if err != nil {
		return Backlog{}, fmt.Errorf("relay: count messages: %w", message.Explain(err))
	}
	return b, nil
}

func (t table) backlog(ctx context.Context) (b Backlog, err error) {
	b.Waiting, err = t.count(ctx, countMessages, maxCount)
	if err == nil {
		b.Parked, err = t.count(ctx, countParked, maxCount)
	}
	if err == nil {
		b.Dead, b.Undecided, b.OldestDead, err = t.dead(ctx, maxCount)
	}
	if err == nil && b.Waiting > 0 {
		b.Oldest, err = t.oldestAlive(ctx, b.Dead > 0)
	}
	if err == nil {
		b.Table, err = t.name(ctx)
	}
	return b, err
}

// The rows that are counted, by their index: PostgreSQL would read the table from its beginning, where
// rows were that are deleted.
const (
	countMessages = "SELECT id FROM belay_message ORDER BY lane, id LIMIT ?"
	countParked   = "SELECT lane FROM belay_parked ORDER BY lane LIMIT ?"
)

// count counts the rows of a query that has a limit.
func (t table) count(ctx context.Context, rows string, limit int) (n int, err error) {
	err = t.get(ctx, "SELECT COUNT(*) FROM ("+rows+") AS counted", []any{limit}, &n)
	return n, err
}

// dead counts the dead letters, those of them that are undecided, and returns the age of the oldest.
func (t table) dead(ctx context.Context, limit int) (dead, open int, oldest time.Duration, err error) {
	var ms int64
	err = t.get(ctx, "SELECT COUNT(*), COUNT(CASE WHEN dead = 2 THEN 1 END), COALESCE({now} - MIN(retry_at), 0) "+
		"FROM (SELECT dead, retry_at FROM belay_parked WHERE dead > 0 LIMIT ?) AS counted", []any{limit}, &dead, &open, &ms)
	return dead, open, milliseconds(ms), err
}

// oldestAlive returns the age of the oldest message whose key has no dead letter, as Backlog.Oldest has it.
func (t table) oldestAlive(ctx context.Context, dead bool) (time.Duration, error) {
	limit := 1
	if dead {
		limit = maxPassed
	}
	var ms int64
	err := t.get(ctx, "SELECT {now} - m.created_at FROM (SELECT id, key_sum, created_at FROM belay_message ORDER BY id LIMIT ?) m "+
		"LEFT JOIN belay_parked p ON p.key_sum = m.key_sum AND p.dead > 0 WHERE p.key_sum IS NULL ORDER BY m.id LIMIT 1", []any{limit}, &ms)
	if dead && errors.Is(err, sql.ErrNoRows) { // the last that was looked at, if there may be more
		err = t.get(ctx, "SELECT {now} - created_at FROM belay_message ORDER BY id LIMIT 1 OFFSET ?", []any{maxPassed - 1}, &ms)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return milliseconds(ms), err
}

// milliseconds returns an age, 0 if the clock was set back.
func milliseconds(ms int64) time.Duration { return time.Duration(max(ms, 0)) * time.Millisecond }

// name returns the name of the table of messages, with its database.
func (t table) name(ctx context.Context) (string, error) {
	in := map[string]string{
		"mysql":    "SELECT COALESCE(CONCAT(DATABASE(), '.'), '')",
		"postgres": "SELECT concat(current_database(), '.', current_schema(), '.')",
	}[t.db.Name]
	if in == "" {
		return message.Table, nil
	}
	var database string
	err := t.get(ctx, in, nil, &database)
	return database + message.Table, err
}
