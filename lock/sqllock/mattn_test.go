//go:build cgo

package sqllock_test

import (
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver named sqlite3
)

func init() { databases["mattn"] = mattnFile }

func mattnFile(tb testing.TB) string {
	tb.Helper()
	return newFile(tb, "_busy_timeout=10000&_journal_mode=WAL&_synchronous=OFF")
}
