package chaos_test

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"
)

// waitingRows is how many messages and events wait, or the last of their ids.
type waitingRows struct{ messages, events int64 }

// livesWithin is how long what waits behind the last fault may take: a relay pauses a key for a minute
// at most, the lanes of one that was killed wait for half a minute, and then all is to be sent.
const livesWithin = 2 * time.Minute

// live fails the test unless the workers send all messages and events that wait behind the last
// fault. They go on with their work meanwhile.
func live(t *report, db *gorm.DB) {
	began := time.Now()
	var last, left waitingRows
	t.await("the database answers behind the last fault", func() bool {
		db, end := briefly(t, db)
		defer end()
		return errors.Join(
			db.Raw("SELECT COALESCE(MAX(id), 0) FROM belay_message").Scan(&last.messages).Error,
			db.Raw("SELECT COALESCE(MAX(id), 0) FROM belay_outbox").Scan(&last.events).Error,
		) == nil
	})
	t.awaitFor(livesWithin, "the workers have sent what waited behind the last fault", func() bool {
		db, end := briefly(t, db)
		defer end()
		return errors.Join(
			db.Table("belay_message").Where("id <= ?", last.messages).Count(&left.messages).Error,
			db.Table("belay_outbox").Where("id <= ?", last.events).Count(&left.events).Error,
		) == nil && left == waitingRows{}
	})
	t.Logf("behind the last fault: %d messages and %d events are left after %.1f s", left.messages, left.events, time.Since(began).Seconds())
}

// briefly returns db for a read: the connection has been idle during all faults, and may be dead without
// an error.
func briefly(t *report, db *gorm.DB) (*gorm.DB, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	return db.WithContext(ctx), cancel
}
