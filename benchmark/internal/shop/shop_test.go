package shop

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

func TestParseMethods(t *testing.T) {
	for list, want := range map[string]int{"": 8, "belay": 1, "belay, redis-lock": 2} {
		if got, err := ParseMethods(list); err != nil || len(got) != want {
			t.Errorf("%q: %v, %v; want %d methods", list, got, err, want)
		}
	}
	for _, bad := range []string{"belly", "belay,", "belay,belay"} {
		if got, err := ParseMethods(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	if Belay.Sells() || !BelayStock.Sells() {
		t.Error("belay inserts, belay-stock sells")
	}
}

func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want Result
	}{
		{nil, Done},
		{ErrSoldOut, SoldOut},
		{fmt.Errorf("do: %w", guard.ErrBusy), Busy},
		{errBusy, Busy},
		{&guard.InterceptionError{Conflict: new(dbguard.ConflictError)}, Intercepted},
		{guard.ErrLost, Intercepted},
		{guard.ErrDuplicate, Duplicate},
		{guard.ErrStale, Stale},
		{errConflict, Stale},
		{&mysql.MySQLError{Number: 1062}, Duplicate},
		{&mysql.MySQLError{Number: 1205}, Failed},
		{guard.ErrUnavailable, Failed},
		{guard.ErrUnknown, Failed},
		{errors.New("else"), Failed},
	} {
		if got := judge(tc.err); got.Result != tc.want || (got.Error != "") != (tc.want == Failed) {
			t.Errorf("%v: %+v, want %s", tc.err, got, tc.want)
		}
	}
}

func TestTake(t *testing.T) {
	left := 1
	if err := take(&left); err != nil || left != 0 {
		t.Errorf("first: %v, %d left", err, left)
	}
	if err := take(&left); !errors.Is(err, ErrSoldOut) || left != 0 {
		t.Errorf("second: %v, %d left", err, left)
	}
}

func TestHold(t *testing.T) {
	h := newHolds()
	ran := make(chan error, 1)
	op := h.before("1", func(context.Context, *gorm.DB) error { return ErrSoldOut })
	go func() { ran <- op(t.Context(), nil) }()
	if err := h.Held(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ran:
		t.Fatalf("it did not stand still: %v", err)
	default:
	}
	h.Resume("1")
	h.Resume("1") // harmless
	if err := <-ran; !errors.Is(err, ErrSoldOut) {
		t.Errorf("error %v, want that of the operation", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	go func() { ran <- h.before("2", nil)(ctx, nil) }()
	if err := h.Held(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	if err := h.Held(ctx, "3"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
}
