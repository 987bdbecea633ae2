package pending_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
)

// TestReservationThatRunsIsNotCounted: a row without times, before its COMMIT, is neither pending nor
// undecided, even if sessions of MySQL and MariaDB read what is not committed.
func TestReservationThatRunsIsNotCounted(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		if db.Name() == "sqlite" { // one transaction at a time
			return
		}
		pool, err := db.DB()
		testdb.WantNil(t, err)
		d, _ := sqldb.Of(db.Name())
		in := sqldb.New(pool, d)
		testdb.WantNil(t, pending.Migrate(t.Context(), in))
		pool.SetMaxOpenConns(2)
		tx, err := pool.BeginTx(t.Context(), nil)
		testdb.WantNil(t, err)
		defer func() { testdb.WantNil(t, tx.Rollback()) }()
		_, err = tx.ExecContext(t.Context(), in.Rebind("INSERT INTO belay_pending (request, attempt, print, operation) VALUES (?, 1, ?, 'pay')"), make([]byte, 32), []byte("p"))
		testdb.WantNil(t, err)
		if db.Name() == "mysql" {
			testdb.WantNil(t, db.Exec("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED").Error)
		}
		b, err := pending.Count(t.Context(), in)
		testdb.WantNil(t, err)
		rows, err := pending.Undecided(t.Context(), in, 9)
		testdb.WantNil(t, err)
		listed, err := pending.List(t.Context(), in, 9)
		testdb.WantNil(t, err)
		if b.Pending != 0 || len(rows) != 0 || len(listed) != 0 {
			t.Errorf("counted %+v, undecided are %+v, listed %+v; want nothing", b, rows, listed)
		}
	})
}
