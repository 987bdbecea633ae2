package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

// told is what the shoppers were told, in numbers of requests.
type told struct {
	sold     int
	busy     int // first interception: the lock
	repeats  int // the unique index: an ordinary repeat
	failures int // second interception: a lock failure
	soldOut  int // the business rule
	others   int
	other    error // the first of the others
}

func count(answers []error) (t told) {
	for _, err := range answers {
		switch {
		case err == nil:
			t.sold++
		case errors.Is(err, guard.ErrBusy):
			t.busy++
		case errors.Is(err, guard.ErrDuplicate):
			t.repeats++
		case errors.Is(err, guard.ErrIntercepted), errors.Is(err, guard.ErrLost):
			t.failures++
		case errors.Is(err, errSoldOut):
			t.soldOut++
		default:
			if t.others++; t.other == nil {
				t.other = err
			}
		}
	}
	return t
}

// books is what the databases say when all is over.
type books struct {
	orders   int64 // rows
	numbers  int64 // different order numbers
	left     int64 // items
	events   int64 // of lock failures, stored by the monitor
	failures int64 // for which they stand
}

func (e *embedded) readBooks(ctx context.Context) (b books, err error) {
	db := e.db.WithContext(ctx)
	counts, err := e.monitor.store.Counts(ctx)
	err = errors.Join(
		err,
		db.Model(&Order{}).Count(&b.orders).Error,
		db.Model(&Order{}).Distinct("no").Count(&b.numbers).Error,
		db.Model(&Stock{}).Where(&Stock{ID: itemID}).Pluck("left", &b.left).Error,
	)
	if err != nil {
		return b, fmt.Errorf("read books: %w", err)
	}
	delete(counts, notify.VerdictUnavailable) // those came again until Redis was back
	for _, c := range counts {
		b.events += c.Events
		b.failures += c.Failures
	}
	return b, nil
}

func (b books) oversold() int64   { return max(0, b.orders-items, -b.left) }
func (b books) duplicates() int64 { return b.orders - b.numbers }

// check is one comparison of what the shoppers were told with what the databases
// say.
type check struct {
	ok   bool
	want string // said if it is ok
	got  string // said if it is not
}

func audit(t told, b books) []check {
	checks := []check{
		{
			b.oversold() == 0 && b.orders == items && b.left == 0,
			fmt.Sprintf("%d orders and %d items left, of %d: nothing is oversold", b.orders, b.left, items),
			fmt.Sprintf("%d orders and %d items left, of %d: %d oversold", b.orders, b.left, items, b.oversold()),
		},
		{
			b.duplicates() == 0,
			fmt.Sprintf("%d different order numbers: nothing is sold twice", b.numbers),
			fmt.Sprintf("%d of %d orders are duplicates", b.duplicates(), b.orders),
		},
		{
			int64(t.sold) == b.orders,
			fmt.Sprintf("%d shoppers were told that they have one", t.sold),
			fmt.Sprintf("%d shoppers were told that they have one, of %d orders", t.sold, b.orders),
		},
		{
			t.failures > 0 && int64(t.failures) == b.failures,
			fmt.Sprintf("guard-monitor has %d event for %d lock failure", b.events, t.failures),
			fmt.Sprintf("%d lock failures, guard-monitor has %d in %d events", t.failures, b.failures, b.events),
		},
	}
	if t.others > 0 {
		checks = append(checks, check{got: fmt.Sprintf("%d requests failed, the first with: %v", t.others, t.other)})
	}
	return checks
}
