package rabbitmq_test

import (
	"log/slog"
	"net/url"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// senders takes so many messages out of the monitor's queue, and returns who sent them.
func senders(t *testing.T, broker string, n int) (names []string) {
	t.Helper()
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		for range n {
			d, ok, err := ch.Get(rabbit.Queue, true)
			if err != nil || !ok {
				t.Fatalf("no message: %v", err)
			}
			names = append(names, d.UserId)
		}
	})
	return names
}

func TestEventsNameTheirSender(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	user := teststack.AMQPUser(t, broker, writer)
	if err := newPublisher(t, user, rabbitmq.Config{}).Publish(t.Context(), event(1)); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(user)
	if err != nil {
		t.Fatal("the user's URL is none")
	}
	if got := senders(t, broker, 1); got[0] != u.User.Username() {
		t.Errorf("sent by %q, want %q", got[0], u.User.Username())
	}
}

// The broker knows a connection under another name than that of the URL, as with a
// token: events and heartbeats go on without one, on the same connection.
func TestPublisherGoesOnWithoutARefusedSender(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	net, through := testamqp.NewAlias(t, broker)
	var log testlog.Buffer
	p := newPublisher(t, through, rabbitmq.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for n := range 3 {
		if err := p.Publish(t.Context(), event(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, got := range senders(t, broker, 3) {
		if got != "" {
			t.Errorf("sent by %q, want nobody", got)
		}
	}
	if n := net.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if n := strings.Count(log.String(), "published without the user"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, log.String())
	}
}
