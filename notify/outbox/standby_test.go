package outbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// TestStoredOnTheStandby: the session of an insert is ended while its COMMIT waits for the
// standby. The row is there then, and not safe; to insert it again waits, too.
func TestStoredOnTheStandby(t *testing.T) {
	ctx := t.Context()
	db := testdb.OpenPostgres(t, teststack.StartPostgres(t, "outbox-standby"))
	if err := Migrate(ctx, db); err != nil {
		t.Fatal(err)
	}
	tab, err := openTable(db)
	if err != nil {
		t.Fatal(err)
	}
	event := row{eventID: "1", body: []byte("{}")}
	insert := func() error {
		short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		return tab.insert(short, event)
	}
	if err := errors.Join(db.Exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").Error, db.Exec("SELECT pg_reload_conf()").Error); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "commits wait for the standby", func() bool {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		return db.WithContext(short).Exec("SELECT pg_logical_emit_message(true, 'test', '')").Error != nil
	})
	if err := insert(); err == nil {
		t.Fatal("the first insert did not wait for the standby")
	}
	testwait.Until(t, "the row is visible", func() bool {
		var n int
		_ = db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Error
		return db.Raw("SELECT COUNT(*) FROM belay_outbox").Row().Scan(&n) == nil && n == 1
	})
	if err := insert(); err == nil {
		t.Error("stored, though no standby has the row")
	}
}
