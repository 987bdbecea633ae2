package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// A context without a deadline does not keep a process alive while the broker is away.
func TestCloseWithoutADeadlineEnds(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var relay recorder
	relay.failWith(down)
	o := open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{Drain: 100 * time.Millisecond}))
	publish(t, o, 1, 2)
	testwait.Until(t, "the relay has paused", func() bool { return relay.asked() > 2 })
	closed := make(chan error, 1)
	go func() { closed <- o.Close(context.Background()) }()
	var err error
	testwait.Until(t, "Close ends", func() bool {
		select {
		case err = <-closed:
			return true
		default:
			return false
		}
	})
	if err == nil || !strings.Contains(err.Error(), "events stay stored") || !errors.Is(err, errDown) {
		t.Errorf("err = %v, want one that says where the events are, and why", err)
	}
	if n := rows(t, db); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// TestCloseForgetsAnOutage: an outage that has ended is not why events stay stored.
func TestCloseForgetsAnOutage(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var relay recorder
	relay.failWith(down)
	hangs := make(chan struct{})
	o := open(t, db, outbox.Config{Relay: notify.PublisherFunc(func(ctx context.Context, ev notify.Event) error {
		if ev.Key == event(3).Key {
			close(hangs)
			<-ctx.Done()
			return ctx.Err()
		}
		return relay.Publish(ctx, ev)
	})})
	publish(t, o, 1, 2)
	testwait.Until(t, "the relay has paused", func() bool { return relay.asked() > 2 })
	relay.failWith(nil)
	testwait.Until(t, "the events are relayed", func() bool { return rows(t, db) == 0 })
	publish(t, o, 3)
	<-hangs
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Close(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, errDown) {
		t.Errorf("err = %v, want that of the context alone", err)
	}
}

// While the broker stays away, Close tries once a second, and says so once.
func TestCloseLogsRarely(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var relay recorder
	relay.failWith(down)
	var log testlog.Buffer
	o := open(t, db, outbox.Config{Relay: &relay, Logger: slog.New(slog.NewTextHandler(&log, nil))}.With(outbox.Limits{Drain: time.Hour}))
	publish(t, o, 1, 2)
	testwait.Until(t, "the relay has tried", func() bool { return relay.asked() > 1 })
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	go func() { closed <- o.Close(ctx) }()
	before := relay.asked()
	testwait.Until(t, "Close has tried again and again", func() bool { return relay.asked() > before+10 })
	cancel()
	if err := <-closed; err == nil {
		t.Error("Close says that all is relayed")
	}
	if n := strings.Count(log.String(), "events are not relayed"); n > 2 {
		t.Errorf("logged %d times, want twice at most\n%s", n, log.String())
	}
}
