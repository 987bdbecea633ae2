package once_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// TestPurgerKeepsRefusals: no repeat of a request that was refused is told that it was done. Refusals
// are in the way of no other answer, and go with their requests.
func TestPurgerKeepsRefusals(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		testdb.WantNil(t, once.Migrate(bg, db))
		g := guardtest.New(t, db)
		pay := func(id string) (guard.Answer[string], error) {
			r := once.Request{Operation: "pay", Scope: once.Anyone, ID: id}
			return guard.Once(bg, g.Guard, r, func(context.Context, *gorm.DB) (string, error) {
				if id == "paid" {
					return "paid", nil
				}
				return "", guard.Refuse("declined")
			})
		}
		for _, id := range []string{"declined", "declined too", "paid"} {
			_, err := pay(id)
			testdb.WantNil(t, err)
			age(t, db, 20)
		}
		p, err := once.NewPurger(db, once.PurgerConfig{Batch: 1, Every: time.Second})
		testdb.WantNil(t, err)
		defer func() { testdb.WantNil(t, p.Close(bg)) }()
		age(t, db, 10) // 70, 50 and 30 hours
		testwait.Until(t, "the answer is gone", func() bool { return count(t, db, "belay_answer") == 2 })
		if age := testmetric.Sum(t, p, "belay_once_oldest_seconds", "table", "belay_answer"); !math.IsNaN(age) {
			t.Errorf("the oldest answer is %v s old, want none beside the refusals", age)
		}
		if _, err := pay("paid"); !errors.Is(err, guard.ErrDuplicate) {
			t.Errorf("the payment that was made: %v", err)
		}
		if got, err := pay("declined"); got != (guard.Answer[string]{Value: "declined", Replayed: true, Refused: true}) || err != nil {
			t.Errorf("the payment that was declined: %+v, %v", got, err)
		}
		age(t, db, 50)
		testwait.Until(t, "everything is gone", func() bool { return count(t, db, "belay_answer")+count(t, db, "belay_once") == 0 })
	})
}

// age makes all requests and answers older by so many hours.
func age(t *testing.T, db *gorm.DB, hours int) {
	t.Helper()
	older := map[string]string{
		"mysql":    "created_at - INTERVAL ? HOUR",
		"postgres": "created_at - make_interval(hours => ?)",
		"sqlite":   "strftime('%Y-%m-%dT%H:%M:%fZ', created_at, '-' || ? || ' hours')",
	}[db.Name()]
	for _, table := range []string{"belay_once", "belay_answer"} {
		testdb.WantNil(t, db.Exec("UPDATE "+table+" SET created_at = "+older, hours).Error)
	}
}
