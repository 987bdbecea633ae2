package intake

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/wait"
)

// listen reads heartbeats until ctx ends, on a connection of its own: whatever
// keeps them from being read must not keep events from it.
func (c *Consumer) listen(ctx context.Context) {
	pause := wait.Backoff{Min: rabbit.MinPause, Max: rabbit.MaxPause}
	for ctx.Err() == nil {
		began := time.Now()
		err := c.hearAll(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > rabbit.MaxPause {
			pause.Reset()
		}
		delay := pause.Next()
		c.cfg.Logger.Warn("heartbeats are not read", "addr", c.heartbeatDialer.Addr(), "error", err, "retry_in", delay)
		_ = wait.Sleep(ctx, delay, nil)
	}
}

// hearAll reads heartbeats through one session. It returns why the session
// ended.
func (c *Consumer) hearAll(ctx context.Context) error {
	var heartbeats <-chan amqp.Delivery
	s, err := c.heartbeatDialer.Dial(ctx, func(ch *amqp.Channel) (err error) {
		if err := declareHeartbeats(ch); err != nil {
			return err
		}
		heartbeats, err = c.read(ch, HeartbeatQueue)
		return err
	})
	if err != nil {
		return err
	}
	defer s.Close()
	c.setListening(true)
	defer c.setListening(false)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d, ok := <-heartbeats:
			if !ok {
				return s.Over()
			}
			if err := c.hear(ctx, &d, s.User); err != nil {
				return err
			}
		}
	}
}

// hear takes one heartbeat; own is the user of guard-monitor. It is acknowledged only so that the broker sends no
// more than Prefetch of them ahead, and forgets the rest by its own rules.
func (c *Consumer) hear(ctx context.Context, d *amqp.Delivery, own string) error {
	var h heartbeat.Heartbeat
	sender := SentBy(d, own)
	if err := h.UnmarshalJSON(d.Body[:min(len(d.Body), MaxBody)]); err != nil {
		c.noBeats.Warn(ctx, c.cfg.Logger, "message is no heartbeat",
			slog.String("message_id", d.MessageId), slog.String("type", d.Type), slog.Int("bytes", len(d.Body)), slog.Any("error", err))
	} else if err := c.cfg.Admit(sender, h.Service); err != nil {
		c.unbound.Inc()
		c.unboundBeats.Warn(ctx, c.cfg.Logger, "heartbeat is dropped", slog.String("message_id", d.MessageId), slog.Any("error", err))
	} else {
		c.heartbeats.Inc()
		c.cfg.Heartbeat(ctx, h, sender)
	}
	if err := d.Ack(false); err != nil {
		return fmt.Errorf("acknowledge heartbeat: %w", err)
	}
	return nil
}

// Listening reports whether both heartbeats and events are read. While they are not,
// the silence of a service proves nothing.
func (c *Consumer) Listening() bool { return c.Session() > 0 }

// Session returns 0 while Listening returns false, and else how many connections heartbeats were read
// through: those that come first through another one may have waited for it.
func (c *Consumer) Session() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listening || c.err != nil {
		return 0
	}
	return c.sessions
}

func (c *Consumer) setListening(listening bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listening = listening
	c.metrics.listening.Set(0)
	if listening {
		c.sessions++
		c.metrics.listening.Set(1)
	}
}
