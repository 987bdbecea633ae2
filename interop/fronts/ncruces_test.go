//go:build ncruces

package fronts_test

import _ "github.com/ncruces/go-sqlite3/driver"

// scripts/test-fronts names the driver so.
func init() {
	databases["sqlite by ncruces"] = database{"ncruces", "sqlite3", file("?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)"), false}
}
