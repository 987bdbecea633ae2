package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// openSample returns the database of the guide's sample, with five items.
func openSample(t *testing.T) (*gorm.DB, *guard.Guard) {
	t.Helper()
	db, done := exampleDB(&Purchase{}, &Item{})
	t.Cleanup(done)
	wantNil(t, errors.Join(once.Migrate(t.Context(), db), once.MigrateCalls(t.Context(), db)))
	wantNil(t, db.Create(&Item{ID: 7, Left: 5}).Error)
	g, stop := exampleGuard(db)
	t.Cleanup(stop)
	return db, g
}

// TestTwoBuyersOneNumber: of two buyers who choose one number in the guide's sample, the second is refused
// before the charge, and however often he repeats his request.
func TestTwoBuyersOneNumber(t *testing.T) {
	db, g := openSample(t)
	charges := 0
	c := purchase(func(context.Context, string, int) (string, error) {
		charges++
		return fmt.Sprint("receipt ", charges), nil
	})
	_, err := buy(t.Context(), g, c, Purchase{No: "1", Buyer: "ann", Item: 7, Cents: 500})
	wantNil(t, err)
	for range 2 {
		_, err := buy(t.Context(), g, c, Purchase{No: "1", Buyer: "ben", Item: 7, Cents: 500})
		if guard.ResultOf(err) != "conflict" || errors.Is(err, guard.ErrPending) {
			t.Errorf("the second buyer gets %v, want a conflict", err)
		}
	}
	var item Item
	wantNil(t, db.Take(&item, 7).Error)
	open, err := once.Open(t.Context(), db, 9)
	wantNil(t, err)
	if charges != 1 || item.Left != 4 || len(open) != 0 {
		t.Errorf("%d charges, %d left, open %+v; want 1, 4 and nothing", charges, item.Left, open)
	}
}

// TestDeclinedPurchase: the answer of the guide's sample tells a declined card from a receipt, and so does
// each repeat.
func TestDeclinedPurchase(t *testing.T) {
	db, g := openSample(t)
	c := purchase(func(context.Context, string, int) (string, error) { return "", errDeclined })
	p := Purchase{No: "1", Buyer: "ann", Item: 7, Cents: 500}
	for range 2 {
		if got, err := buy(t.Context(), g, c, p); got != (Result{Text: errDeclined.Error()}) || err != nil {
			t.Errorf("the answer is %+v, %v, want that the card is declined", got, err)
		}
	}
	var item Item
	wantNil(t, db.Take(&item, 7).Error)
	wantNil(t, db.Take(&p).Error)
	if item.Left != 5 || p.State != "declined" {
		t.Errorf("%d left, and the purchase is %s; want 5 and declined", item.Left, p.State)
	}
}
