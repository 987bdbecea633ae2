package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
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

func count(answers []answer) (t told) {
	for _, a := range answers {
		switch {
		case a.err == nil:
			t.sold++
		case errors.Is(a.err, guard.ErrBusy):
			t.busy++
		case errors.Is(a.err, guard.ErrDuplicate):
			t.repeats++
		case errors.Is(a.err, guard.ErrIntercepted), errors.Is(a.err, guard.ErrLost):
			t.failures++
		case errors.Is(a.err, errSoldOut):
			t.soldOut++
		default:
			if t.others++; t.other == nil {
				t.other = a.err
			}
		}
	}
	return t
}

// books is what the databases say when all is over.
type books struct {
	orders     int64 // rows
	numbers    int64 // different order numbers
	left       int64 // items
	events     int64 // stored by the monitor
	failures   int64 // for which they stand
	alertLines int
}

func readBooks(ctx context.Context, db *gorm.DB, a *alerts) (books, error) {
	var b books
	db = db.WithContext(ctx)
	err := errors.Join(
		db.Model(&Order{}).Count(&b.orders).Error,
		db.Model(&Order{}).Distinct("no").Count(&b.numbers).Error,
		db.Model(&Stock{}).Where(&Stock{ID: itemID}).Pluck("left", &b.left).Error,
	)
	if err != nil {
		return b, fmt.Errorf("read books: %w", err)
	}
	counts, err := a.store.Counts(ctx)
	for _, c := range counts {
		b.events += c.Events
		b.failures += c.Failures
	}
	b.alertLines = bytes.Count(a.lines.Bytes(), []byte("\n"))
	return b, err
}

func (b books) oversold(items int) int64 { return max(0, b.orders-int64(items), -b.left) }
func (b books) duplicates() int64        { return b.orders - b.numbers }

// audit compares what the shoppers were told with what the databases say. It
// returns everything that is wrong.
func audit(items int, t told, b books) error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	check(b.oversold(items) == 0, "%d items oversold", b.oversold(items))
	check(b.duplicates() == 0, "%d orders are duplicates", b.duplicates())
	check(b.orders == int64(items), "%d orders for %d items", b.orders, items)
	check(b.orders+b.left == int64(items), "%d orders and %d items left, of %d", b.orders, b.left, items)
	check(int64(t.sold) == b.orders, "%d shoppers were told that they have one, %d orders", t.sold, b.orders)
	check(t.failures > 0, "no lock failure was intercepted")
	check(int64(t.failures) == b.failures, "%d lock failures, alerts for %d", t.failures, b.failures)
	check(int64(b.alertLines) == b.events, "%d events, %d alerts written", b.events, b.alertLines)
	check(t.others == 0, "%d requests failed, the first with: %w", t.others, t.other)
	return errors.Join(wrong...)
}
