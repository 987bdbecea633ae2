package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestInTx: a transaction takes effect as a whole or not at all, on every database.
func TestInTx(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		testInTx(t, open(), open())
	})
}

// TestInTxWithoutAutocommit: the settings of a session do not keep a transaction from being
// committed.
func TestInTxWithoutAutocommit(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"&autocommit=0", "&completion_type=1"} {
		dsn := teststack.MySQL(t)
		testInTx(t, testdb.OpenMySQL(t, dsn+setting), testdb.OpenMySQL(t, dsn))
	}
}

// testInTx runs transactions on db. Others is a pool on the same database.
func testInTx(t *testing.T, db, others *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	testdb.WantNil(t, err)
	own := sqldb.New(pool, dialect(t, db.Name()))
	testdb.WantNil(t, own.Migrate(t.Context(), "CREATE TABLE IF NOT EXISTS a (id INT NOT NULL PRIMARY KEY)"))
	failed := errors.New("failed")
	for id, end := range []error{nil, failed, sql.ErrNoRows} {
		err := own.InTx(t.Context(), func(c sqldb.Conn) error {
			for _, n := range []int{id, id + 10} {
				if _, err := c.ExecContext(t.Context(), "INSERT INTO a (id) VALUES (?)", n); err != nil {
					t.Error(err)
				}
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Errorf("InTx: %v, want %v", err, end)
		}
		want := 2
		if errors.Is(end, failed) {
			want = 0
		}
		var n int
		testdb.WantNil(t, others.Raw("SELECT COUNT(*) FROM a WHERE id IN (?, ?)", id, id+10).Row().Scan(&n))
		if n != want {
			t.Errorf("after %v others see %d rows, want %d", end, n, want)
		}
	}
	var ids []int
	testdb.WantNil(t, own.Query(t.Context(), "SELECT id FROM a WHERE id > ? ORDER BY id", []any{2}, func(scan sqldb.Scan) error {
		var id int
		err := scan(&id)
		ids = append(ids, id)
		return err
	}))
	if len(ids) != 2 || ids[0] != 10 || ids[1] != 12 {
		t.Errorf("read %v, want 10 and 12", ids)
	}
}

// TestSilentServer: the end of a transaction is bounded though its context has no end, and its
// connection is not used again.
func TestSilentServer(t *testing.T) {
	type run = func(sqldb.DB, context.Context, func(sqldb.Conn) error) error
	for statement, tt := range map[string]struct {
		run  run
		want error
	}{
		"COMMIT":   {sqldb.DB.InTx, context.DeadlineExceeded},
		"ROLLBACK": {sqldb.DB.Read, nil},
	} {
		t.Run(statement, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{silent: statement}
				pool := sql.OpenDB(s)
				defer pool.Close()
				err := tt.run(sqldb.New(pool, dialect(t, "mysql")), context.Background(), func(c sqldb.Conn) error {
					_, err := c.ExecContext(t.Context(), "INSERT")
					return err
				})
				if !errors.Is(err, tt.want) {
					t.Errorf("err = %v, want %v", err, tt.want)
				}
				if n := s.open(); n != 0 {
					t.Errorf("%d connections are open", n)
				}
			})
		})
	}
}
