package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// routines creates procedures, and returns statements that end the transaction by what they
// run.
func routines(t *testing.T, db *gorm.DB) map[string][]string {
	t.Helper()
	ending := make(map[string][]string)
	for name, body := range map[string]string{
		"commits":  "COMMIT;",
		"rolls":    "ROLLBACK;",
		"creates":  "CREATE TABLE made (id INT); DROP TABLE made;",
		"clears":   "TRUNCATE cleared;",
		"starts":   "START TRANSACTION;",
		"chains":   "COMMIT; START TRANSACTION;",
		"fails":    "COMMIT; SIGNAL SQLSTATE '45000';",
		"harmless": "INSERT INTO orders (no) VALUES ('by a procedure');",
		"dynamic":  "SET @s = 'COMMIT'; PREPARE s FROM @s; EXECUTE s; DEALLOCATE PREPARE s;",
	} {
		wantNil(t, db.Exec("CREATE PROCEDURE "+name+"() BEGIN "+body+" END").Error)
		if name != "harmless" {
			ending[name] = []string{"CALL " + name + "()"}
		}
	}
	wantNil(t, db.Exec("CREATE TABLE cleared (id INT)").Error)
	ending["prepared"] = []string{"PREPARE c FROM 'COMMIT'", "EXECUTE c"}
	var version string
	wantNil(t, db.Raw("SELECT VERSION()").Scan(&version).Error)
	if strings.Contains(version, "MariaDB") {
		ending["immediate"] = []string{"EXECUTE IMMEDIATE 'COMMIT'"}
		ending["settings"] = []string{"SET STATEMENT max_statement_time = 5 FOR CALL commits()"}
	}
	return ending
}

// TestRoutineThatEndsTheTransaction: an operation whose procedure or prepared statement ends
// the transaction ends with an error, also if it swallows that of the statement, and an
// event says that its outcome is unknown. No later statement of it is sent.
func TestRoutineThatEndsTheTransaction(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		for name, statements := range routines(e.t, e.db) {
			for way, opErr := range map[string]error{"nil": nil, "error": errors.New("rolled back by the program")} {
				e.t.Run(name+"/"+way, func(t *testing.T) {
					wantNil(t, e.db.Where("1 = 1").Delete(&Order{}).Error)
					events := len(e.Events.All())
					err := e.Do(bg, "order:"+name+way, func(ctx context.Context, tx *gorm.DB) error {
						if err := tx.Create(&Order{No: "before"}).Error; err != nil {
							return err
						}
						for _, s := range statements {
							_ = tx.Exec(s).Error
						}
						_ = tx.Create(&Order{No: "behind"}).Error
						return opErr
					})
					wantIs(t, err, guard.ErrUnknown)
					wantIs(t, err, guard.ErrTxControl)
					var behind int64
					wantNil(t, e.db.Model(&Order{}).Where("no = ?", "behind").Count(&behind).Error)
					if behind > 0 {
						t.Error("a statement behind the end was committed")
					}
					all := e.Events.All()[events:]
					if len(all) != 1 || all[0].Verdict != notify.VerdictUnknownCommit || all[0].Outcome != notify.OutcomeUnknown {
						t.Errorf("events are %+v, want one of an unknown commit", all)
					}
				})
			}
		}
	})
}

// TestRoutineWithRows: the end of the transaction is found out behind rows, too: at the next
// statement, or at the end.
func TestRoutineWithRows(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		wantNil(e.t, e.db.Exec("CREATE PROCEDURE selects() BEGIN COMMIT; SELECT 7; END").Error)
		for _, next := range []bool{true, false} {
			err := e.Do(bg, fmt.Sprint("order:", next), func(ctx context.Context, tx *gorm.DB) error {
				var n int
				if err := tx.Raw("CALL selects()").Scan(&n).Error; err != nil || n != 7 {
					e.t.Errorf("%d, %v", n, err)
				}
				if next {
					wantIs(e.t, tx.Exec("UPDATE orders SET amount = 1").Error, guard.ErrTxControl)
				}
				return nil
			})
			wantIs(e.t, err, guard.ErrUnknown)
		}
	})
}

// TestHarmlessRoutine: a procedure that ends nothing is part of the transaction, also in a
// savepoint, and what the request has stored is as without it.
func TestHarmlessRoutine(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		routines(e.t, e.db)
		wantNil(e.t, once.Migrate(bg, e.db))
		op := func(fail error) guard.Op {
			return func(ctx context.Context, tx *gorm.DB) error {
				if err := tx.SavePoint("a").Exec("CALL harmless()").RollbackTo("a").Error; err != nil {
					return err
				}
				if err := tx.Exec("CALL harmless()").Error; err != nil {
					return err
				}
				return fail
			}
		}
		oops := errors.New("oops")
		wantIs(e.t, e.Do(bg, "order:a", op(oops), guard.For(printed("1", "x"))), oops)
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
		wantNil(e.t, e.Do(bg, "order:a", op(nil), guard.For(printed("1", "x"))))
		wantIs(e.t, e.Do(bg, "order:a", e.never(), guard.For(printed("1", "x"))), guard.ErrDuplicate)
		wantIs(e.t, e.Do(bg, "order:a", e.never(), guard.For(printed("1", "y"))), guard.ErrMismatch)
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want 1", n)
		}
		e.wantNoEvent()
	})
}

// TestClaimCommittedByARoutine: a request whose claim was committed without the rest of its
// operation is no repeat: its outcome stays unknown.
func TestClaimCommittedByARoutine(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9})
		routines(e.t, e.db)
		r := printed("1", "x")
		err := e.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Exec("CALL commits()").Error; err != nil {
				return err
			}
			return takeOne(1)(ctx, tx)
		}, guard.For(r))
		wantIs(e.t, err, guard.ErrUnknown)
		wantIs(e.t, err, guard.ErrTxControl)
		for _, key := range []string{"order:b", "order:b", "order:c"} { // the lock of the first is left to its ttl
			err := e.Do(bg, key, e.never(), guard.For(r))
			wantIs(e.t, err, guard.ErrUnknown)
			wantIs(e.t, err, guard.ErrTxControl)
		}
		if served, err := e.Served(bg, r); served || !errors.Is(err, guard.ErrUnknown) {
			e.t.Errorf("served is %v, %v", served, err)
		}
		if left := e.stock(1).Left; left != 9 {
			e.t.Errorf("left is %d, want 9", left)
		}
	})
}
