package chaos_test

import (
	"errors"
	"time"

	"gorm.io/gorm"
)

// waitingRows is how many messages and events wait, or the last of their ids.
type waitingRows struct{ messages, events int64 }

// live fails the test unless the workers send all messages and events that wait behind the last
// fault in a minute. They go on with their work meanwhile, and wait for the leases of those
// that were killed.
func live(t *report, db *gorm.DB) {
	began := time.Now()
	var last, left waitingRows
	t.await("the database answers behind the last fault", func() bool {
		return errors.Join(
			db.Raw("SELECT COALESCE(MAX(id), 0) FROM belay_message").Scan(&last.messages).Error,
			db.Raw("SELECT COALESCE(MAX(id), 0) FROM belay_outbox").Scan(&last.events).Error,
		) == nil
	})
	t.await("the workers have sent what waited behind the last fault", func() bool {
		return errors.Join(
			db.Table("belay_message").Where("id <= ?", last.messages).Count(&left.messages).Error,
			db.Table("belay_outbox").Where("id <= ?", last.events).Count(&left.events).Error,
		) == nil && left == waitingRows{}
	})
	t.Logf("behind the last fault: %d messages and %d events are left after %.1f s", left.messages, left.events, time.Since(began).Seconds())
}
