package dbtx_test

import (
	"context"
	"database/sql"
	"testing"

	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/sim/simdb"
)

// insertBeside inserts an order by a statement of Belay's own.
func insertBeside(t *testing.T, tx *dbtx.Tx, no string) {
	t.Helper()
	wantNil(t, tx.Beside(func(ctx context.Context, c dbtx.Execer, _ string) error {
		res, err := c.ExecContext(ctx, "INSERT INTO orders (no, shop) VALUES ('"+no+"', 'a')")
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); n != 1 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
		return nil
	}))
}

// TestNumberWithTheLastStatement: a transaction whose last statement is Belay's own knows its number
// without another one, and so does one that goes on, and one that writes nothing at its end.
func TestNumberWithTheLastStatement(t *testing.T) {
	for name, more := range map[string]func(t *testing.T, tx *dbtx.Tx){
		"the last":   func(*testing.T, *dbtx.Tx) {},
		"a row more": func(t *testing.T, tx *dbtx.Tx) { wantNil(t, tx.DB().Create(&Order{No: "more", Shop: "b"}).Error) },
		"no row more": func(t *testing.T, tx *dbtx.Tx) {
			wantNil(t, tx.Beside(func(ctx context.Context, c dbtx.Execer, _ string) error {
				_, err := c.ExecContext(ctx, "DELETE FROM orders WHERE no = 'nobody'")
				return err
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, db *gorm.DB) {
				tx := begin(t, db, dbtx.Options{})
				insertBeside(t, tx, "7")
				var number string
				if db.Name() == "postgres" {
					wantNil(t, tx.DB().Raw("SELECT pg_current_xact_id()::text").Scan(&number).Error)
					insertBeside(t, tx, "8")
				}
				more(t, tx)
				wantNil(t, tx.Commit())
				if tx.Number() != number {
					t.Errorf("the number is %q, want %q", tx.Number(), number)
				}
			})
		})
	}
}

// TestErrorBehindTheNumber: what PostgreSQL has reported with a statement says nothing once another
// one has failed: it would execute the COMMIT as a ROLLBACK.
func TestErrorBehindTheNumber(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() != "postgres" {
			return
		}
		tx := begin(t, db, dbtx.Options{})
		insertBeside(t, tx, "7")
		if tx.DB().Exec("SELECT 1/0").Error == nil {
			t.Fatal("no error")
		}
		if err := tx.Commit(); err == nil {
			t.Error("it is committed")
		}
		if n := count(t, db, &Order{}); n != 0 {
			t.Errorf("%d orders", n)
		}
	})
}

// TestNumberOfAnotherSession: a statement that came to another session has a transaction of its own
// there, whose number proves nothing of the one that its connection had.
func TestNumberOfAnotherSession(t *testing.T) {
	check := func(t *testing.T, db *gorm.DB, s *swapper) {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Exec("INSERT INTO orders (no, shop) VALUES ('a', 'a')").Error)
		s.swapAt("'b'", nil)
		insertBeside(t, tx, "b")
		wantIs(t, tx.Commit(), dbtx.ErrTxControl)
		wantIs(t, tx.Unseen(), dbtx.ErrTxControl)
	}
	eachSwapper(t, check)
	t.Run("simulated", func(t *testing.T) {
		sdb := simdb.New(simdb.PostgreSQL, simdb.Knobs{Unknown: func(err error) { t.Error(err) }})
		sdb.Exec("CREATE TABLE orders (no VARCHAR(64) NOT NULL, shop VARCHAR(64), PRIMARY KEY (no))")
		s := &swapper{Connector: sdb.Connector("p", atOnce{})}
		pool := sql.OpenDB(s)
		t.Cleanup(func() { _ = pool.Close() })
		db, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
		wantNil(t, err)
		wantNil(t, dbtx.Install(db))
		check(t, db, s)
	})
}

// atOnce is a gate that lets every call pass.
type atOnce struct{}

func (atOnce) Pass(context.Context, simdb.Call) simdb.Fate { return simdb.Execute }
