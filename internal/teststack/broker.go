package teststack

import (
	"os"
	"testing"
)

// A Broker is a RabbitMQ of one test's own, which may be killed.
type Broker struct {
	own      *servers
	server   string // its name in scripts/stack
	url, api string
}

// StartBroker brings up a RabbitMQ and has it stopped when the test ends. It is
// a RabbitMQ 4 where the tests run on one (scripts/test --on rabbitmq4). Like
// AMQP it skips or fails without a stack.
func StartBroker(tb testing.TB, name string) *Broker {
	tb.Helper()
	b := &Broker{server: "rabbitmq"}
	prefix := "BELAY_AMQP"
	// Where there is a stack, there may be another.
	if setting(tb, "BELAY_AMQP_URL") == os.Getenv("BELAY_AMQP4_URL") {
		b.server, prefix = "rabbitmq4", "BELAY_AMQP4"
	}
	b.own = newStack(tb, name)
	b.own.Stack(tb, "up", b.server)
	settings := b.own.settings(tb)
	b.url, b.api = settings[prefix+"_URL"], settings[prefix+"_API"]
	return b
}

// AMQP returns the URL of an empty virtual host made for this test, as the
// function of that name does.
func (b *Broker) AMQP(tb testing.TB) string {
	tb.Helper()
	return newVirtualHost(tb, b.url, b.api)
}

// Sync writes to disk what the broker knows of its queues. RabbitMQ 3.10 does
// that half a second late, and when it is killed before, a new quorum queue
// comes back without a leader and takes nothing any more.
func (b *Broker) Sync(tb testing.TB) {
	tb.Helper()
	b.Control(tb, "eval", "[dets:sync(T) || T <- dets:all()], ok.")
}

// Kill kills the broker at once.
func (b *Broker) Kill(tb testing.TB) {
	tb.Helper()
	b.own.Stack(tb, "kill", b.server)
}

// Start starts the broker after Kill and waits until it answers.
func (b *Broker) Start(tb testing.TB) {
	tb.Helper()
	b.own.Stack(tb, "start", b.server)
}

// Control runs rabbitmqctl.
func (b *Broker) Control(tb testing.TB, args ...string) {
	tb.Helper()
	b.own.Stack(tb, append([]string{"rabbitmqctl", b.server}, args...)...)
}
