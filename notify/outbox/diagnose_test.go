package outbox_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/notify/outbox"
)

// TestDiagnose: events that wait for long, and a table that is gone.
func TestDiagnose(t *testing.T) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := migrated(t, open())
		o, err := outbox.New(db, outbox.Config{})
		testdb.WantNil(t, err)
		t.Cleanup(func() { closeNow(o) })
		want := func(check, says string) {
			t.Helper()
			found := o.Diagnose(t.Context())
			if check == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 || found[0].Check != check || !strings.Contains(found[0].String(), says) {
				t.Errorf("found %v, want %s that says %q", found, check, says)
			}
		}
		want("", "")
		testdb.WantNil(t, o.Publish(t.Context(), event(1)))
		want("", "")
		testdb.WantNil(t, db.Exec("UPDATE belay_outbox SET created_at = '2001-01-01 00:00:00'").Error)
		want("events-backlog", "1 events wait, the oldest for ")
		testdb.WantNil(t, db.Exec("DROP TABLE belay_outbox").Error)
		want("events-outbox", "outbox.Migrate")
	})
}
