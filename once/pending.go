package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/pending"
)

// MigrateCalls creates the table belay_pending, which guard.Call needs beside those of Migrate, if
// it does not exist. The statements are in the folder internal/pending/schema, for other tools of
// migration.
func MigrateCalls(ctx context.Context, db *gorm.DB) error {
	t, err := open(db)
	if err != nil {
		return err
	}
	if err := pending.Migrate(ctx, t.db); err != nil {
		return fmt.Errorf("once: %w", err)
	}
	return nil
}

// CheckCalls returns an error unless the table belay_pending is there, with all its columns, can be
// read, has a unique index on request alone, and an engine with transactions.
func CheckCalls(ctx context.Context, db *gorm.DB) error {
	t, err := open(db)
	if err != nil {
		return err
	}
	if err := pending.Check(ctx, t.db); err != nil {
		return fmt.Errorf("once: %w", err)
	}
	return nil
}

// A Pending is a request whose guard.Call is not settled.
type Pending struct {
	ID        string    // that its calls have, to ask the other service for
	Key       string    // Request.Key
	Operation string    // Request.Operation
	Since     time.Time // when the reservation was made; times are of the database's clock
	Until     time.Time // no call begins later
	Tries     int       // calls that may have begun
	Calling   bool      // a process may be calling now
	Answered  bool      // the other service has answered: a repeat of the request settles that
	Undecided bool      // nobody calls any more, and the outcome is unknown: a person has to look
}

// Open lists the oldest requests whose guard.Call is not settled, at most limit. It is for people
// and for metrics. A repeat of the request settles all that are not undecided.
func Open(ctx context.Context, db *gorm.DB, limit int) ([]Pending, error) {
	if limit < 1 {
		return nil, errors.New("once: Open needs a limit of at least 1")
	}
	t, err := open(db)
	if err != nil {
		return nil, err
	}
	rows, err := pending.List(ctx, t.db, limit)
	if err != nil {
		return nil, fmt.Errorf("once: %w", err)
	}
	found := make([]Pending, len(rows))
	for i, r := range rows {
		found[i] = Pending{
			ID: r.ID(), Key: r.Key(), Operation: r.Operation,
			Since: r.Since, Until: r.Last, Tries: r.Tries, Calling: r.Calling, Answered: r.Answered, Undecided: r.Undecided,
		}
	}
	return found, nil
}
