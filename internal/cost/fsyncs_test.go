package cost_test

import (
	"testing"

	"gorm.io/gorm"
)

// fsyncs returns how many times a server has synchronized files of its own, for all its clients.
func fsyncs(tb testing.TB, db *gorm.DB) int {
	tb.Helper()
	var n int
	var err error
	if db.Name() == "postgres" {
		// A session reports what it did when it is idle.
		if err = db.Exec("SELECT pg_stat_force_next_flush()").Error; err == nil {
			err = db.Raw(walFsyncs(tb, db)).Scan(&n).Error
		}
	} else {
		var name string
		err = db.Raw("SHOW GLOBAL STATUS LIKE 'Innodb_data_fsyncs'").Row().Scan(&name, &n)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// walFsyncs returns the query for the fsyncs of PostgreSQL's log, which 18 counts elsewhere.
func walFsyncs(tb testing.TB, db *gorm.DB) string {
	tb.Helper()
	var since18 bool
	if err := db.Raw("SELECT current_setting('server_version_num')::int >= 180000").Scan(&since18).Error; err != nil {
		tb.Fatal(err)
	}
	if since18 {
		return "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'"
	}
	return "SELECT wal_sync FROM pg_stat_wal"
}
