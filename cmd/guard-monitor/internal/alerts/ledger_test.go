package alerts_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/notify"
)

// A ledger is the store of a small monitor: it takes each event once, by its id,
// and notes every delivery.
type ledger struct{ db *gorm.DB }

func (l ledger) migrate() error {
	for _, statement := range []string{
		"CREATE TABLE ledger (event_id VARCHAR(64) NOT NULL PRIMARY KEY)",
		"CREATE TABLE deliveries (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, event_id VARCHAR(64) NOT NULL)",
	} {
		if err := l.db.Exec(statement).Error; err != nil {
			return err
		}
	}
	return nil
}

func (l ledger) store(ctx context.Context, ev notify.Event) (added bool, err error) {
	err = l.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("INSERT INTO deliveries (event_id) VALUES (?)", ev.ID).Error; err != nil {
			return err
		}
		done := tx.Exec("INSERT INTO ledger (event_id) VALUES (?) ON DUPLICATE KEY UPDATE event_id = event_id", ev.ID)
		added = done.RowsAffected == 1
		return done.Error
	})
	return added, err
}

// check compares the ledger with the events that were taken. What is in it and
// was not taken is a failure, too.
func (l ledger) check(t *testing.T, taken []string) (once, lost int) {
	t.Helper()
	var ids []string
	if err := l.db.Raw("SELECT event_id FROM ledger").Scan(&ids).Error; err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, id := range ids {
		times[id]++
	}
	for _, id := range taken {
		switch times[id] {
		case 0:
			lost++
		case 1:
			once++
		}
		delete(times, id)
	}
	for id := range times {
		t.Errorf("the monitor has event %s, which nobody reported", id)
	}
	return once, lost
}

func (l ledger) received(t *testing.T) (n int) {
	t.Helper()
	if err := l.db.Raw("SELECT COUNT(*) FROM deliveries").Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}
