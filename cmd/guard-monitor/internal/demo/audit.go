package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	orders     int64 // rows
	numbers    int64 // different order numbers
	left       int64 // items
	events     int64 // of lock failures, stored by the monitor
	failures   int64 // for which they stand
	alertLines int
}

func readBooks(ctx context.Context, s scene) (books, error) {
	var b books
	db := s.db().WithContext(ctx)
	err := errors.Join(
		db.Model(&Order{}).Count(&b.orders).Error,
		db.Model(&Order{}).Distinct("no").Count(&b.numbers).Error,
		db.Model(&Stock{}).Where(&Stock{ID: itemID}).Pluck("left", &b.left).Error,
	)
	if err != nil {
		return b, fmt.Errorf("read books: %w", err)
	}
	counts, err := s.desk().store.Counts(ctx)
	for verdict, c := range counts {
		if verdict != notify.VerdictUnavailable { // those were asked again until Redis was back
			b.events += c.Events
			b.failures += c.Failures
		}
	}
	for _, line := range s.desk().lines.all() {
		if !strings.Contains(line, " "+string(notify.VerdictUnavailable)+" ") {
			b.alertLines++
		}
	}
	return b, err
}

func (b books) oversold(items int) int64 { return max(0, b.orders-int64(items), -b.left) }
func (b books) duplicates() int64        { return b.orders - b.numbers }

// check is one comparison of what the shoppers were told with what the databases
// say.
type check struct {
	ok   bool
	want string // said if it is ok
	got  string // said if it is not
}

func audit(items int, t told, b books) []check {
	checks := []check{
		{
			b.oversold(items) == 0 && b.orders == int64(items) && b.orders+b.left == int64(items),
			fmt.Sprintf("%d orders and %d items left, of %d: nothing is oversold", b.orders, b.left, items),
			fmt.Sprintf("%d orders and %d items left, of %d: %d oversold", b.orders, b.left, items, b.oversold(items)),
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
			t.failures > 0 && int64(t.failures) == b.failures && int64(b.alertLines) == b.events,
			fmt.Sprintf("guard-monitor has %d event for %d lock failure", b.events, t.failures),
			fmt.Sprintf("%d lock failures, guard-monitor has %d in %d events, and wrote %d lines", t.failures, b.failures, b.events, b.alertLines),
		},
	}
	if t.others > 0 {
		checks = append(checks, check{got: fmt.Sprintf("%d requests failed, the first with: %v", t.others, t.other)})
	}
	return checks
}

// wrong returns what the checks have found.
func wrong(checks []check) error {
	var errs []error
	for _, c := range checks {
		if !c.ok {
			errs = append(errs, errors.New(c.got))
		}
	}
	return errors.Join(errs...)
}
