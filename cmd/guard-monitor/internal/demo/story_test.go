package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belaygo/belay/guard"
)

// newVisits opens a shop without a crowd.
func newVisits(t *testing.T) *visits {
	t.Helper()
	e, err := openEmbedded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.close() })
	shop, err := startShop(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeShop(shop) })
	return &visits{embedded: e, shop: shop}
}

// endless is a scene whose time is over when the lock is to be lost.
type endless struct {
	*embedded
	end func()
}

var errStuck = errors.New("the master does not die")

func (s endless) loseLock(context.Context, *screen, request, request) (clicked, doubled, err error) {
	s.end()
	return nil, nil, errStuck
}

// What went wrong is said if the story took too long, but not to those who
// stopped it.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cause error
		tells bool
	}{
		{errTimeout, true},
		{errors.New("interrupt"), false},
	} {
		t.Run(tt.cause.Error(), func(t *testing.T) {
			t.Parallel()
			e, err := openEmbedded(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer e.close()
			ctx, cancel := context.WithCancelCause(t.Context())
			err = play(ctx, "demo", endless{e, func() { cancel(tt.cause) }}, newSilentScreen())
			if !errors.Is(err, tt.cause) || errors.Is(err, errStuck) != tt.tells {
				t.Errorf("play: %v", err)
			}
		})
	}
}

// A click that comes back before its lock is lost is told, at once.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	v := newVisits(t)
	v.redis.SetError("LOADING Redis is loading the dataset in memory")
	click, double := request{no: "2026-0001", to: v.shop[0]}, request{no: "2026-0001", to: v.shop[1]}
	_, _, lost := v.loseLock(t.Context(), newSilentScreen(), click, double)
	if !errors.Is(lost, guard.ErrUnavailable) || !strings.HasPrefix(lost.Error(), "shop-a did not get to its insert\n") {
		t.Errorf("error is %v, want ErrUnavailable before the insert", lost)
	}

	v.redis.SetError("")
	if err := click.to.buy(t.Context(), click.no); err != nil {
		t.Errorf("the order after it: %v", err) // it stood still until the test ended
	}
}
