package promises_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
)

// Seat has fields of all kinds that differ between memory and the database.
type Seat struct {
	ID        int64
	Sold      int
	Note      string    `gorm:"-"`
	Opened    int       `gorm:"<-:create"`
	UpdatedAt time.Time // when the last one was sold
	seen      int
	Version   dbguard.Version
}

// TestCombineSeesWhatIsSaved: a change sees of those before it what the database would
// have shown.
func TestCombineSeesWhatIsSaved(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Seat{}))
		e.create(&Seat{ID: 1, Opened: 7, UpdatedAt: time.Now().Add(-time.Hour)})
		sell := func(s *Seat) error {
			if s.Note != "" || s.seen != 0 || s.Opened != 7 {
				e.t.Errorf("a change sees %+v", *s)
			}
			s.Sold++
			s.Note, s.seen, s.Opened = "mine", 1, 8
			return nil
		}
		once := func(s *Seat) error {
			if time.Since(s.UpdatedAt) < time.Minute {
				return errSoldOut
			}
			return sell(s)
		}
		combineSeats(e, once, once, sell)
		var s Seat
		wantNil(e.t, e.db.Take(&s).Error)
		if s.Sold != 2 || s.Version != 3 || s.Opened != 7 {
			e.t.Errorf("the seat is %+v, want one of the two that sell once a minute, and the third", s)
		}
	})
}

// Gauge has a column that the database computes.
type Gauge struct {
	ID       int64
	Total    int
	Reserved int
	Free     int `gorm:"->"`
	Version  dbguard.Version
}

// TestCombineGeneratedColumn: nobody decides by a value from before the others' changes.
func TestCombineGeneratedColumn(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.Exec("CREATE TABLE gauges (id bigint PRIMARY KEY, total int, reserved int, "+
			"free int GENERATED ALWAYS AS (total - reserved) STORED, version bigint)").Error)
		e.create(&Gauge{ID: 1, Total: 2})
		reserve := func(g *Gauge) error {
			if g.Free < 1 {
				return errSoldOut
			}
			g.Reserved++
			return nil
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				err := e.Apply(bg, "sku:1", guard.Update(&Gauge{ID: 1}, reserve), guard.Wait(time.Minute), guard.Combine())
				if err != nil && !errors.Is(err, errSoldOut) {
					e.t.Error(err)
				}
			})
		}
		all.Wait()
		var g Gauge
		wantNil(e.t, e.db.Take(&g).Error)
		if g.Reserved != 2 || g.Free != 0 {
			e.t.Errorf("the gauge is %+v, want no more reserved than there is", g)
		}
	})
}

// combineSeats makes changes of the seat 1 in a crew.
func combineSeats(e *env, changes ...func(*Seat) error) {
	e.t.Helper()
	e.inside().NoTurnLimit()
	var all sync.WaitGroup
	wantNil(e.t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
		for i, change := range changes {
			all.Go(func() {
				err := e.Apply(bg, "sku:1", guard.Update(&Seat{ID: 1}, change), guard.Wait(time.Minute), guard.Combine())
				if err != nil && !errors.Is(err, errSoldOut) {
					e.t.Error(err)
				}
			})
			testwait.Until(e.t, "the caller queues", func() bool { return e.inside().Lines() == 1 && e.inside().Queued("sku:1") == i })
		}
		return nil
	}))
	all.Wait()
}

// Secret is a name that does not show when it is printed.
type Secret string

func (Secret) GoString() string { return "***" }

type Vault struct {
	ID      Secret `gorm:"primaryKey;size:16"`
	Left    int
	Version dbguard.Version
}

// TestCombineKnowsRowsByTheirKeys: and not by what is printed of them.
func TestCombineKnowsRowsByTheirKeys(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Vault{}))
		ids := []Secret{"a", "b", "a", "b"}
		e.create(&Vault{ID: "a", Left: 10}, &Vault{ID: "b", Left: 20})
		var all sync.WaitGroup
		wantNil(e.t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
			for i, id := range ids {
				all.Go(func() {
					open := func(v *Vault) error { v.Left--; return nil }
					if err := e.Apply(bg, "sku:1", guard.Update(&Vault{ID: id}, open), guard.Wait(time.Minute), guard.Combine()); err != nil {
						e.t.Error(err)
					}
				})
				testwait.Until(e.t, "the caller queues", func() bool { return e.inside().Lines() == 1 && e.inside().Queued("sku:1") == i })
			}
			return nil
		}))
		all.Wait()
		for id, want := range map[Secret]int{"a": 8, "b": 18} {
			var v Vault
			wantNil(e.t, e.db.Take(&v, "id = ?", id).Error)
			if v.Left != want {
				e.t.Errorf("the vault %s is %+v, want %d left", string(id), v, want)
			}
		}
	})
}

// Desk can be deleted softly.
type Desk struct {
	ID        int64
	Left      int
	DeletedAt gorm.DeletedAt
	Version   dbguard.Version
}

// TestCombineSoftDelete: no change gets a row that another change has deleted.
func TestCombineSoftDelete(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Desk{}))
		for at := range 3 {
			e.create(&Desk{ID: int64(at + 1), Left: 9})
			e.inside().NoTurnLimit()
			answers := make([]error, 3)
			var all sync.WaitGroup
			wantNil(e.t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
				for i := range answers {
					all.Go(func() {
						answers[i] = e.Apply(bg, "sku:1", guard.Update(&Desk{ID: int64(at + 1)}, func(d *Desk) error {
							if d.DeletedAt.Valid {
								e.t.Errorf("%d closes: the change of %d gets a deleted row", at, i)
							}
							if d.Left--; i == at {
								d.DeletedAt = gorm.DeletedAt{Time: time.Now(), Valid: true}
							}
							return nil
						}), guard.Wait(time.Minute), guard.Combine())
					})
					testwait.Until(e.t, "the caller queues", func() bool { return e.inside().Lines() == 1 && e.inside().Queued("sku:1") == i })
				}
				return nil
			}))
			all.Wait()
			var d Desk
			wantNil(e.t, e.db.Unscoped().Take(&d, at+1).Error)
			if d.Left != 6 || !d.DeletedAt.Valid || d.Version != 4 || errors.Join(answers...) != nil {
				e.t.Errorf("%d closes: the desk is %+v, the answers are %v", at, d, answers)
			}
		}
	})
}
