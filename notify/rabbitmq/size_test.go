package rabbitmq_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// The broker closes the channel on a message that is larger than its max_message_size.
// That costs no connection, and the next event is taken.
func TestEventThatIsTooLargeForTheBroker(t *testing.T) {
	server := teststack.StartBroker(t, "size")
	server.Control(t, "eval", "application:set_env(rabbit, max_message_size, 4096), persistent_term:put(max_message_size, 4096).")
	broker := server.AMQP(t)
	s := runMonitor(t, broker)
	net, through := testamqp.NewProxy(t, broker)
	var log testlog.Buffer
	p := newPublisher(t, through, rabbitmq.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})

	large := event(1)
	large.Key = strings.Repeat("k", 8<<10)
	for range 12 { // more than open the breaker
		if err := p.Publish(t.Context(), large); !errors.Is(err, notify.ErrRefused) {
			t.Fatalf("err = %v, want ErrRefused", err)
		}
	}
	publish(t, p, 2)
	testwait.Until(t, "the next event is stored", func() bool { return s.has(2) })
	if s.has(1) {
		t.Error("the monitor has the event that was refused")
	}
	if n := net.Connections(); n != 1 {
		t.Errorf("%d connections, want 1\n%s", n, log.String())
	}
}
