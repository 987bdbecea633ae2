package outbox

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// TestStoredOnTheStandby: the session of an insert is ended while its COMMIT waits for the
// standby. The row is there then, and not safe; to insert it again waits, too.
func TestStoredOnTheStandby(t *testing.T) {
	ctx := t.Context()
	dsn := teststack.StartPostgres(t, "outbox-standby")
	db := testdb.OpenPostgres(t, dsn)
	if err := Migrate(ctx, db); err != nil {
		t.Fatal(err)
	}
	tab, err := openTable(db)
	if err != nil {
		t.Fatal(err)
	}
	event := row{eventID: "1", body: []byte("{}")}
	insert := func() error {
		endWaits(t, db)
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- tab.insert(short, event) }()
		testwait.Until(t, "the insert waits for the standby", func() bool {
			return testdb.WaitingForStandby(t, db) > 0 || len(done) > 0
		})
		cancel()
		return <-done
	}
	testdb.SetStandby(t, db, "nobody")
	if err := insert(); err == nil {
		t.Fatal("the first insert did not wait for the standby")
	}
	endWaits(t, db)
	testwait.Until(t, "the row is visible", func() bool {
		var n int
		return db.Raw("SELECT COUNT(*) FROM belay_outbox").Row().Scan(&n) == nil && n == 1
	})
	if err := insert(); err == nil {
		t.Error("stored, though no standby has the row")
	}
	tab.db = promotedBehind(t, dsn)
	if err := insert(); err == nil {
		t.Error("stored, though only a server has the row that was deposed")
	}
}

// endWaits ends the sessions whose COMMIT waits for the standby.
func endWaits(t *testing.T, db *gorm.DB) {
	t.Helper()
	testwait.Until(t, "no session waits for the standby", func() bool {
		_ = db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Error
		return testdb.WaitingForStandby(t, db) == 0
	})
}

// promotedBehind returns a database whose first session is one of the server, and whose later
// ones are as on another server that has taken its place: they wait for no standby.
func promotedBehind(t *testing.T, dsn string) sqldb.DB {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	deposed := true
	pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		if deposed {
			deposed = false
			return nil
		}
		_, err := c.Exec(ctx, "SET synchronous_commit = local")
		return err
	}))
	t.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxIdleConns(-1) // a session for each that takes one
	d, _ := sqldb.Of("postgres")
	return sqldb.New(pool, d)
}
