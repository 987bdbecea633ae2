package main

import (
	"context"
	"errors"
	"io"
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
	shop, err := e.startShop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeShop(shop) })
	return &visits{embedded: e, shop: shop}
}

// cue calls end when a text appears in what is written to it.
type cue struct {
	text string
	end  func()
}

func (w cue) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.end()
	}
	return len(p), nil
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
			err = e.play(ctx, &screen{out: cue{"A lock is lost", func() { cancel(tt.cause) }}})
			if !errors.Is(err, tt.cause) || errors.Is(err, context.Canceled) != tt.tells { // of the connection that loseLock takes
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
	_, _, lost := v.loseLock(t.Context(), &screen{out: io.Discard}, click, double)
	if !errors.Is(lost, guard.ErrUnavailable) || !strings.HasPrefix(lost.Error(), "shop-a did not get to its insert\n") {
		t.Errorf("error is %v, want ErrUnavailable before the insert", lost)
	}

	v.redis.SetError("")
	if err := click.to.buy(t.Context(), click.no); err != nil {
		t.Errorf("the order after it: %v", err) // it stood still until the test ended
	}
}
