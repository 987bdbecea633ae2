package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// While an event cannot be stored, nothing is read: heartbeats wait at the
// broker, which bounds them, and not in memory, and the consumer says so.
func TestHeartbeatsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	errAway := errors.New("the store is away")
	var away atomic.Bool
	away.Store(true)
	s := store{fail: func(notify.Event) error {
		if away.Load() {
			return errAway
		}
		return nil
	}}
	var heard atomic.Int64
	const prefetch, beats = 10, 100
	c, _ := consume(t, broker, rabbitmq.ConsumerConfig{
		Prefetch:  prefetch,
		Heartbeat: func(context.Context, notify.Heartbeat) { heard.Add(1) },
	}, s.handle)
	testwait.Until(t, "it is connected", c.Connected)
	p := newPublisher(t, broker, rabbitmq.PublisherConfig{})
	publish(t, p, 1)
	testwait.Until(t, "it says that it does not read", func() bool { return errors.Is(c.Err(), errAway) })
	for n := range beats {
		err := p.PublishHeartbeat(t.Context(), notify.Heartbeat{
			ID: fmt.Sprintf("b-%d", n), Service: "orders", At: time.Now(), Interval: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the rest waits at the broker", func() bool {
		return depth(t, broker, rabbitmq.HeartbeatQueue) == beats-prefetch
	})
	away.Store(false)
	testwait.Until(t, "all are heard", func() bool { return heard.Load() == beats && c.Connected() })
	testwait.Until(t, "none comes again", func() bool { return depth(t, broker, rabbitmq.HeartbeatQueue) == 0 })
}
