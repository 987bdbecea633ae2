package wild

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// TestSearchPathOfTransaction: the row is in a tenant's schema, of which only the transaction
// knows.
func TestSearchPathOfTransaction(t *testing.T) {
	on(t, "postgres", func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		e.must(e.db.Exec("CREATE SCHEMA t7").Error)
		e.must(e.db.Exec("CREATE TABLE t7.bookings (LIKE public.bookings INCLUDING ALL)").Error)
		op := func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Exec("SET LOCAL search_path = t7").Error; err != nil {
				return err
			}
			return guard.Insert(&Booking{No: "A1"}).Run(ctx, tx)
		}
		e.want(e.Do(bg, "booking:A1", op), "done", 0)
		e.want(e.Do(bg, "booking:A1", op), "duplicate", 0)
	})
}

// TestJoinedVersionProvesNothing: a query fills the model with the version of another row.
func TestJoinedVersionProvesNothing(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		e.must(e.db.Create(&Booking{ID: 1, No: "A1"}).Error)
		e.must(e.db.Model(&Booking{}).Where("id = 1").Update("name", "n").Error)
		e.must(e.db.Create(&History{HID: 9, ID: 1, No: "A1", Version: 1}).Error)
		for i, q := range []func(*gorm.DB) *gorm.DB{
			func(tx *gorm.DB) *gorm.DB {
				return tx.Select("bookings.*", "h.version").Joins("JOIN histories h ON h.id = bookings.id")
			},
			func(tx *gorm.DB) *gorm.DB { return tx.Select("*").Joins("JOIN histories h ON h.id = bookings.id") },
			func(tx *gorm.DB) *gorm.DB {
				return tx.Table("bookings").Joins("JOIN histories h ON h.id = bookings.id").Select("*")
			},
			func(tx *gorm.DB) *gorm.DB { return tx.Table("histories") },
			func(tx *gorm.DB) *gorm.DB { return tx.Table("histories AS bookings") },
			func(tx *gorm.DB) *gorm.DB {
				return tx.Table("(SELECT id, no, name, version FROM histories) AS bookings")
			},
			func(tx *gorm.DB) *gorm.DB { return tx.Table("(?) AS bookings", e.db.Table("histories")) },
		} {
			before := len(e.Events.All())
			err := e.Do(bg, "booking:A1", func(_ context.Context, tx *gorm.DB) error {
				var o Booking
				if err := tx.Take(&o, 1).Error; err != nil {
					return err
				}
				var rows []Booking
				return q(tx).Find(&rows).Error
			}, guard.Protects(&Booking{No: "A1"}))
			if n := len(e.Events.All()) - before; n != 0 || err != nil {
				e.t.Errorf("query %d: %s, %d events: %v", i, guard.ResultOf(err), n, err)
			}
		}
	})
}

// TestHistoryTableProvesNothing: it has several states of one row.
func TestHistoryTableProvesNothing(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		e.must(e.db.Create(&[]History{{HID: 8, ID: 1, No: "A1", Version: 1}, {HID: 9, ID: 1, No: "A1", Version: 2}}).Error)
		e.want(e.Do(bg, "booking:A1", func(_ context.Context, tx *gorm.DB) error {
			var rows []Booking
			return tx.Table("histories").Find(&rows).Error
		}, guard.Protects(&Booking{No: "A1"})), "done", 0)
	})
}

// TestSystemVersionedTableProvesNothing: MariaDB gives all states of a row.
func TestSystemVersionedTableProvesNothing(t *testing.T) {
	on(t, "mysql", func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		if e.db.Exec("ALTER TABLE bookings ADD SYSTEM VERSIONING").Error != nil {
			return // MySQL has none
		}
		e.must(e.db.Create(&Booking{ID: 1, No: "A1"}).Error)
		e.must(e.db.Model(&Booking{}).Where("id = 1").Update("name", "n").Error)
		e.want(e.Do(bg, "booking:A1", func(_ context.Context, tx *gorm.DB) error {
			var rows []Booking
			return tx.Table("bookings FOR SYSTEM_TIME ALL").Find(&rows).Error
		}, guard.Protects(&Booking{No: "A1"})), "done", 0)
	})
}
