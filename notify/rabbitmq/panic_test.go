package rabbitmq_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/belaygo/belay/notify/rabbitmq"
)

// A panicky handler panics at each record.
type panicky struct{ slog.Handler }

func (panicky) Enabled(context.Context, slog.Level) bool { panic("a logger") }

// A logger that panics ends neither the process nor the attempts to connect.
func TestPanicOfTheLogger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // nobody listens
	p := newPublisher(t, "amqp://"+l.Addr().String(), rabbitmq.Config{Timeout: time.Second, Logger: slog.New(panicky{})})
	for n := range 2 {
		if err := p.Publish(t.Context(), event(n)); err == nil {
			t.Error("an event was published to nobody")
		}
	}
}
