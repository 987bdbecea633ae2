package web

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
)

// slowLetters answer when they are let; each method says what it begins.
type slowLetters struct {
	began  chan string
	answer chan int
}

func newSlowLetters() slowLetters {
	return slowLetters{make(chan string, 10), make(chan int)}
}

func (l slowLetters) look(ctx context.Context, what string) (int, error) {
	l.began <- what
	select {
	case n := <-l.answer:
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (l slowLetters) Count(ctx context.Context) (int, error) { return l.look(ctx, "count") }

func (l slowLetters) List(ctx context.Context, _ int) ([]deadletter.Letter, int, error) {
	n, err := l.look(ctx, "list")
	return nil, n, err
}

func (l slowLetters) Replay(ctx context.Context, _ func(*deadletter.Letter) bool) (int, error) {
	return l.look(ctx, "replay")
}

func TestDeadCountIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		letters := newSlowLetters()
		d := newDeadCount(Config{Letters: letters, Logger: slog.New(slog.DiscardHandler)})
		go d.run(ctx)
		asked := func() bool {
			d.want()
			synctest.Wait()
			select {
			case <-letters.began:
				return true
			default:
				return false
			}
		}
		expect := func(want int) {
			t.Helper()
			letters.answer <- want
			synctest.Wait()
			if n, known := d.last(); n != want || !known {
				t.Errorf("%d letters, %t, want %d", n, known, want)
			}
		}
		if !asked() {
			t.Fatal("the broker is never asked")
		}
		d.renew() // while it is asked: what it answers is of before
		expect(2)
		if !asked() {
			t.Fatal("the broker is not asked again after a change while it was asked")
		}
		expect(1)
		if asked() {
			t.Fatal("the broker is asked again at once")
		}
		d.renew()
		if !asked() {
			t.Fatal("the broker is not asked after a change")
		}
		expect(0)
		<-time.After(keepDead) // of the bubble's clock
		if !asked() {
			t.Fatal("the broker is not asked again after a while")
		}
	})
}

func TestLettersAreLookedAtInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newSlowLetters()
		letters := turns{slow, make(chan struct{}, 1)}
		looks := map[string]func(context.Context) (int, error){
			"count":  letters.Count,
			"list":   func(ctx context.Context) (int, error) { _, n, err := letters.List(ctx, 1); return n, err },
			"replay": func(ctx context.Context) (int, error) { return letters.Replay(ctx, nil) },
		}
		for name, look := range looks {
			go func() {
				if n, err := look(t.Context()); n != 7 || err != nil {
					t.Errorf("%s: %d, %v", name, n, err)
				}
			}()
		}
		for range looks {
			synctest.Wait()
			if len(slow.began) != 1 {
				t.Errorf("%d look at once", len(slow.began))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := letters.Count(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("who waits no longer gets %v", err)
			}
			<-slow.began
			slow.answer <- 7
		}
	})
}
