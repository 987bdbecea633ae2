package testdb

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"
)

// Waiting returns how many of the sessions wait for a lock of MySQL, MariaDB or
// PostgreSQL.
func Waiting(tb testing.TB, db *gorm.DB, sessions ...int64) int {
	tb.Helper()
	var waiting []int64
	var err error
	if db.Name() == "postgres" {
		err = db.Raw("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&waiting).Error
	} else {
		waiting, err = InnoDBWaiting(tb.Context(), db.ConnPool)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return len(slices.DeleteFunc(slices.Clone(sessions), func(id int64) bool { return !slices.Contains(waiting, id) }))
}

// InnoDBWaiting returns the sessions that wait for a lock of InnoDB, as its
// status shows them. information_schema.innodb_trx is renewed only when nobody
// has read it for 100 ms: two tests that poll it let each other wait for ever.
func InnoDBWaiting(ctx context.Context, db gorm.ConnPool) (ids []int64, err error) {
	var kind, name, status string
	if err := db.QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
		return nil, err
	}
	for _, transaction := range strings.Split(status, "---TRANSACTION ")[1:] {
		if !strings.Contains(transaction, "\nLOCK WAIT ") {
			continue
		}
		if _, after, ok := strings.Cut(transaction, "thread id "); ok {
			digits, _, _ := strings.Cut(after, ",")
			id, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Transactions returns how many transactions are open on the MySQL database of db, or -1: MySQL lists
// no sessions while one has bytes in its statement that are no text.
func Transactions(tb testing.TB, db *gorm.DB) (n int) {
	tb.Helper()
	err := db.Raw(`SELECT COUNT(*) FROM information_schema.innodb_trx AS t
		JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE()`).Scan(&n).Error
	if err != nil {
		tb.Log(err)
		return -1
	}
	return n
}
