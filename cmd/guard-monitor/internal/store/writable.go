package store

import (
	"context"
	"fmt"
)

// Writable returns nil if the store can be written now: it commits a transaction that changes
// nothing that anybody reads. So a full disk is noticed before an event comes.
func (s *Store) Writable(ctx context.Context) error {
	// SQLite writes its first page, though the value is the same.
	if _, err := s.write.ExecContext(ctx, `PRAGMA user_version = 0`); err != nil {
		return fmt.Errorf("write store: %w", err)
	}
	return nil
}
