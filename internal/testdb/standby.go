package testdb

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testwait"
)

// SetStandby names the standby that the commits of a PostgreSQL wait for, none if name is empty. It
// returns when they do, or do not, and when each session of db knows the name. The server must be
// of this test alone.
func SetStandby(tb testing.TB, db *gorm.DB, name string) {
	tb.Helper()
	WantNil(tb, db.Exec("ALTER SYSTEM SET synchronous_standby_names = '"+name+"'").Error)
	WantNil(tb, db.Exec("SELECT pg_reload_conf()").Error)
	if name == "" {
		WantNil(tb, commit(tb.Context(), db))
	} else {
		testwait.Until(tb, "commits wait for the standby", func() bool { return commitWaits(tb, db) })
	}
	pool, err := db.DB()
	WantNil(tb, err)
	pool.SetMaxIdleConns(-1) // a session may not have read the settings since
	pool.SetMaxIdleConns(2)  // the default
}

// commitWaits reports whether a commit waits for the standby. It may not wait yet for a name that
// has just been set.
func commitWaits(tb testing.TB, db *gorm.DB) bool {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	var committing sync.WaitGroup
	defer committing.Wait()
	defer cancel()
	var ended atomic.Bool
	committing.Go(func() { _ = commit(ctx, db); ended.Store(true) })
	waits := false
	testwait.Until(tb, "a commit waits, or has ended", func() bool {
		waits = WaitingForStandby(tb, db) > 0
		return waits || ended.Load()
	})
	return waits
}

// WaitingForStandby returns how many sessions wait for the standby at their COMMIT.
func WaitingForStandby(tb testing.TB, db *gorm.DB) (n int) {
	tb.Helper()
	WantNil(tb, db.Raw("SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n).Error)
	return n
}

// commit commits something that is in no table.
func commit(ctx context.Context, db *gorm.DB) error {
	return db.WithContext(ctx).Exec("SELECT pg_logical_emit_message(true, 'test', '')").Error
}
