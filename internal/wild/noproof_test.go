package wild

import (
	"context"
	"sync"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

type Booking struct {
	ID      int64
	No      string `gorm:"size:64;uniqueIndex"`
	Name    string `gorm:"size:64"`
	Version dbguard.Version
}

type Memo struct {
	ID   int64
	Text string `gorm:"size:64"`
}

// History has the states of bookings.
type History struct {
	HID     int64 `gorm:"primaryKey"`
	ID      int64
	No      string `gorm:"size:64"`
	Name    string `gorm:"size:64"`
	Version int64
}

// TestWaiterProvesNothing: another session waits for the row with FOR UPDATE, and writes
// nothing.
func TestWaiterProvesNothing(t *testing.T) {
	on(t, "mysql", func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		e.must(e.db.Create(&Booking{ID: 1, No: "A1"}).Error)
		e.must(e.db.Model(&Booking{}).Where("id = 1").Update("name", "n").Error)
		other := e.open()
		done := make(chan error, 1)
		e.must(e.db.Callback().Update().After("gorm:update").Before("belay:written").Register("test:waiter", func(db *gorm.DB) {
			if dbtx.FromContext(db.Statement.Context) == nil {
				return
			}
			session := make(chan int64, 1)
			go func() {
				done <- other.Transaction(func(tx *gorm.DB) error {
					var id int64
					if err := tx.Raw("SELECT CONNECTION_ID()").Scan(&id).Error; err != nil {
						return err
					}
					session <- id
					return tx.Raw("SELECT id FROM bookings WHERE no = 'A1' FOR UPDATE").Scan(&id).Error
				})
			}()
			e.untilWaits(<-session)
		}))
		err := e.Do(bg, "x", func(_ context.Context, tx *gorm.DB) error {
			return tx.Save(&Booking{ID: 1, No: "A1", Name: "q", Version: 1}).Error
		}, guard.Protects(&Booking{No: "A1"}))
		e.want(err, "stale", 0)
		e.must(<-done)
	})
}

// TestCacheProvesNothing: a query is answered without the database.
func TestCacheProvesNothing(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		e.must(e.db.Create(&Booking{ID: 1, No: "A1"}).Error)
		e.must(e.db.Model(&Booking{}).Where("id = 1").Update("name", "n").Error)
		query := e.db.Callback().Query().Get("gorm:query")
		e.must(e.db.Callback().Query().Replace("gorm:query", func(db *gorm.DB) {
			if o, ok := db.Statement.Dest.(*Booking); ok {
				callbacks.BuildQuerySQL(db)               // the name of the cached result
				*o = Booking{ID: 1, No: "A1", Version: 1} // cached before the last write
				db.RowsAffected = 1
				return
			}
			query(db)
		}))
		err := e.Do(bg, "booking:A1", func(_ context.Context, tx *gorm.DB) error {
			var o Booking
			if err := tx.Take(&o, 1).Error; err != nil {
				return err
			}
			return tx.Model(&o).Update("name", "x").Error
		}, guard.Protects(&Booking{No: "A1"}))
		e.want(err, "stale", 0)
	})
}

// TestSecondWriteUnmet: two writes of one row, the second under a condition that is not
// met.
func TestSecondWriteUnmet(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		e.must(e.db.Create(&Booking{ID: 1, No: "A1", Name: "n"}).Error)
		err := e.Do(bg, "booking:A1", func(_ context.Context, tx *gorm.DB) error {
			var o Booking
			if err := tx.Take(&o, 1).Error; err != nil {
				return err
			}
			if err := tx.Model(&o).Update("name", "x").Error; err != nil {
				return err
			}
			return tx.Model(&o).Where("name = ?", "paid").Update("name", "y").Error
		}, guard.Protects(&Booking{No: "A1"}))
		e.want(err, "conflict", 0)
	})
}

// TestOlderVersionProvesNothing: the second attempt meets a node that is behind the first
// one's.
func TestOlderVersionProvesNothing(t *testing.T) {
	on(t, "mysql", func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		e.must(e.db.Create(&Booking{ID: 1, No: "A1"}).Error)
		e.must(e.db.Model(&Booking{}).Where("id = 1").Update("name", "n").Error)
		other, tries := e.open(), 0
		err := e.Do(bg, "booking:A1", func(_ context.Context, tx *gorm.DB) error {
			var o Booking
			if err := tx.Take(&o, 1).Error; err != nil {
				return err
			}
			if tries++; tries == 1 {
				e.must(other.Exec("UPDATE bookings SET version = 1 WHERE id = 1").Error) // as a node shows it that is behind
				return &mysqldriver.MySQLError{Number: 1213}                             // as Galera refuses a transaction
			}
			return nil
		}, guard.Protects(&Booking{No: "A1"}), guard.Retries(2))
		e.want(err, "done", 0)
	})
}

type Shelf struct{ ID int64 }

type Box struct {
	ID      int64
	ShelfID int64
	Shelf   Shelf `gorm:"constraint:OnDelete:CASCADE"`
	Name    string
	Version dbguard.Version
}

// TestCascadeUnderAnotherKey: the row goes with its parent, whose holder deletes that.
func TestCascadeUnderAnotherKey(t *testing.T) {
	on(t, "mysql postgres", func(e *env) {
		e.migrate(&Booking{}, &Memo{}, &History{})
		e.must(e.db.AutoMigrate(&Shelf{}, &Box{}))
		e.must(e.db.Create(&Box{ID: 9, Shelf: Shelf{ID: 1}}).Error)
		err := e.Do(bg, "box:9", func(_ context.Context, tx *gorm.DB) error {
			var c Box
			if err := tx.Take(&c, 9).Error; err != nil {
				return err
			}
			e.must(e.peer.Do(bg, "shelf:1", func(_ context.Context, tx *gorm.DB) error { return tx.Delete(&Shelf{ID: 1}).Error }))
			return tx.Model(&c).Update("name", "x").Error
		}, guard.Protects(&Box{ID: 9}))
		e.want(err, "busy", 0)
	})
}

type Aisle struct {
	Code string `gorm:"primaryKey;size:16"`
}

// Crate is named by its aisle, and a bin by a column of its own.
type Crate struct {
	ID      int64
	Aisle   *string `gorm:"size:16;uniqueIndex:place"`
	Place   int64   `gorm:"uniqueIndex:place"`
	Name    string
	Version dbguard.Version
}

type Bin struct {
	Aisle   string `gorm:"primaryKey;size:16"`
	Place   int64  `gorm:"primaryKey;autoIncrement:false"`
	Label   string `gorm:"size:16;uniqueIndex"`
	Name    string
	Version dbguard.Version
}

// TestRewrittenUnderAnotherKey: the row gets another name, or another primary key, with its
// parent, whose holder changes that. A write of the row itself is an overlap, as ever.
func TestRewrittenUnderAnotherKey(t *testing.T) {
	for name, tt := range map[string]struct{ rule, change string }{
		"ON UPDATE CASCADE":  {"ON UPDATE CASCADE", "UPDATE aisles SET code = 'b' WHERE code = 'a'"},
		"ON DELETE SET NULL": {"ON DELETE SET NULL", "DELETE FROM aisles WHERE code = 'a'"},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "mysql postgres", func(e *env) {
				e.migrate(&Aisle{}, &Crate{}, &Bin{})
				e.must(e.db.Exec("ALTER TABLE crates ADD FOREIGN KEY (aisle) REFERENCES aisles (code) " + tt.rule).Error)
				a := "a"
				e.must(e.db.Create(&Aisle{Code: a}).Error)
				e.must(e.db.Create(&Crate{ID: 1, Aisle: &a, Place: 1}).Error)
				rename := func() error {
					return e.peer.Do(bg, "aisle:a", func(_ context.Context, tx *gorm.DB) error { return tx.Exec(tt.change).Error })
				}
				err := e.Do(bg, "crate:a:1", func(_ context.Context, tx *gorm.DB) error {
					var c Crate
					if err := tx.Take(&c, 1).Error; err != nil {
						return err
					}
					e.must(rename())
					return tx.Model(&c).Where("aisle = ?", a).Update("name", "x").Error
				}, guard.Protects(&Crate{Aisle: &a, Place: 1}))
				e.want(err, "busy", 0)
			})
		})
	}
	t.Run("the primary key", func(t *testing.T) {
		on(t, "mysql postgres", func(e *env) {
			e.migrate(&Aisle{}, &Bin{})
			e.must(e.db.Exec("ALTER TABLE bins ADD FOREIGN KEY (aisle) REFERENCES aisles (code) ON UPDATE CASCADE").Error)
			e.must(e.db.Create(&Aisle{Code: "a"}).Error)
			e.must(e.db.Create(&Bin{Aisle: "a", Place: 1, Label: "l"}).Error)
			update := func(rival func()) error {
				return e.Do(bg, "bin:l", func(_ context.Context, tx *gorm.DB) error {
					var b Bin
					if err := tx.Take(&b, "label = ?", "l").Error; err != nil {
						return err
					}
					rival()
					return tx.Model(&b).Update("name", "x").Error
				}, guard.Protects(&Bin{Label: "l"}))
			}
			e.want(update(func() {
				e.must(e.peer.Do(bg, "aisle:a", func(_ context.Context, tx *gorm.DB) error {
					return tx.Exec("UPDATE aisles SET code = 'b' WHERE code = 'a'").Error
				}))
			}), "busy", 0)
			e.want(update(func() {
				e.must(e.db.Exec("UPDATE bins SET version = version + 1").Error)
			}), "intercepted", 1)
		})
	})
}

// untilWaits returns when a session of MySQL waits for a lock.
func (e *env) untilWaits(session int64) {
	e.t.Helper()
	testwait.Until(e.t, "it waits", func() bool { return testdb.Waiting(e.t, e.db, session) == 1 })
}

// TestOverlapBehindAnotherInsert: the operation has inserted another row before its own
// becomes protected, and the rival comes then.
func TestOverlapBehindAnotherInsert(t *testing.T) {
	on(t, "mysql postgres", func(e *env) {
		e.migrate(&Booking{}, &Memo{})
		const key = "booking:A1"
		rival := sync.OnceFunc(func() {
			e.Forget(key)
			e.must(e.peer.Apply(bg, key, guard.Insert(&Booking{No: "A1"})))
		})
		e.must(e.db.Callback().Create().After("belay:before").Before("gorm:create").Register("test:rival", func(db *gorm.DB) {
			if db.Statement.Table == "bookings" {
				rival()
			}
		}))
		e.want(e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Create(&Memo{Text: "begun"}).Error; err != nil {
				return err
			}
			return guard.Insert(&Booking{No: "A1"}).Run(ctx, tx)
		}), "intercepted", 1)
		if v := e.Events.All()[0].Verdict; v != notify.VerdictOverlap {
			e.t.Errorf("verdict is %s, want an overlap", v)
		}
	})
}
