package amqpinbox_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
)

// TestStopKeepsTheOrder: the message that is tried when Serve ends keeps its place before those that
// were delivered with it.
func TestStopKeepsTheOrder(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.cfg.Workers = 1
	b.cfg.Handle = func(context.Context, *gorm.DB, amqp.Delivery) error {
		b.tries.Add(1)
		return errors.New("not yet")
	}
	want := []string{"1", "2", "3"}
	for _, id := range want {
		b.publish(id, "")
	}
	_, stop := b.serve()
	testwait.Until(t, "one is tried, and all are delivered", func() bool { return b.tries.Load() > 0 && b.left(queue) == 0 })
	testdb.WantNil(t, stop())

	var mu sync.Mutex
	var order []string
	b.cfg.Handle = func(_ context.Context, _ *gorm.DB, d amqp.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, d.MessageId)
		return nil
	}
	_, stop = b.serve()
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
