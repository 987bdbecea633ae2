package amqpinbox_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
)

// TestOneWorkerKeepsTheOrder: the messages behind one that is tried again wait for it.
func TestOneWorkerKeepsTheOrder(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.cfg.Workers = 1
	var mu sync.Mutex
	var order []string
	b.cfg.Handle = func(_ context.Context, _ *gorm.DB, d amqp.Delivery) error {
		if d.MessageId == "1" && b.tries.Add(1) < 4 {
			return errors.New("not yet")
		}
		mu.Lock()
		defer mu.Unlock()
		order = append(order, d.MessageId)
		return nil
	}
	want := []string{"1", "2", "3", "4"}
	for _, id := range want {
		b.publish(id, "x")
	}
	_, stop := b.serve()
	testwait.Until(t, "all are handled", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(order) >= len(want)
	})
	testdb.WantNil(t, stop())
	if !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

// TestIDOfAnotherField: an id that the producer has put elsewhere will do.
func TestIDOfAnotherField(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.cfg.ID = func(d amqp.Delivery) string { return string(d.Body) }
	for range 3 {
		b.publish("", "payment 1")
	}
	b.publish("", "payment 2")
	_, stop := b.serve()
	testwait.Until(t, "all are settled", func() bool { return b.cents() == 2 && b.left(queue) == 0 })
	testdb.WantNil(t, stop())
	if got, letters := b.cents(), b.left(dead); got != 2 || letters != 0 {
		t.Errorf("%d cents and %d dead letters, want 2 and none", got, letters)
	}
}

// TestOneWarningForAMessage: each further try is logged at the level debug.
func TestOneWarningForAMessage(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	log := new(levels)
	b.cfg.Logger = slog.New(log)
	b.cfg.Handle = func(context.Context, *gorm.DB, amqp.Delivery) error {
		if b.tries.Add(1) < 5 {
			return errors.New("record not found")
		}
		return inbox.Rejected(errors.New("no such account"))
	}
	b.publish("a", "")
	_, stop := b.serve()
	testwait.Until(t, "it is a dead letter", func() bool { return b.left(dead) == 1 })
	testdb.WantNil(t, stop())
	if warned, debugged, failed := log.warnings.Load(), log.debugs.Load(), log.errors.Load(); warned != 1 || debugged != 3 || failed != 1 {
		t.Errorf("%d warnings, %d lines of debug, %d errors; want 1, 3, 1", warned, debugged, failed)
	}
}

// levels counts lines by their level.
type levels struct{ debugs, warnings, errors atomic.Int64 }

func (l *levels) Enabled(context.Context, slog.Level) bool { return true }
func (l *levels) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *levels) WithGroup(string) slog.Handler            { return l }

func (l *levels) Handle(_ context.Context, r slog.Record) error {
	switch r.Level {
	case slog.LevelDebug:
		l.debugs.Add(1)
	case slog.LevelWarn:
		l.warnings.Add(1)
	case slog.LevelError:
		l.errors.Add(1)
	}
	return nil
}
