package rabbitmq_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// TestDiagnose: a sound broker, and one mistake after the other. Nothing is published.
func TestDiagnose(t *testing.T) {
	broker := teststack.AMQP(t)
	declare(t, broker)
	bindDebug(t, broker)
	find := func(name, address, check, says string) {
		t.Helper()
		p := newPublisher(t, address, rabbitmq.Config{})
		found := p.Diagnose(t.Context())
		if check == "" && len(found) == 0 {
			return
		}
		if len(found) != 1 || found[0].Check != check || !strings.Contains(found[0].String(), says) || strings.Contains(found[0].String(), "wrong:") {
			t.Errorf("%s: found %v, want %s that says %q", name, found, check, says)
		}
	}
	user := teststack.AMQPUser(t, broker, writer)
	find("no reader", user, "events-reader", "nobody reads belay.monitor")
	runMonitor(t, broker)
	testwait.Until(t, "the monitor reads", func() bool {
		return len(newPublisher(t, broker, rabbitmq.Config{}).Diagnose(t.Context())) == 0
	})
	find("sound", user, "", "")
	teststack.Grant(t, user, `^belay\.monitor$`)
	find("no right to the exchange", user, "events-rights", "access to exchange 'belay.events'")

	stranger, err := url.Parse(user)
	if err != nil {
		t.Fatal(err)
	}
	stranger.User = url.UserPassword("nobody", "wrong:")
	find("a wrong password", stranger.String(), "events-broker", "username or password not allowed")
	find("no broker", "amqp://127.0.0.1:1", "events-broker", "refused")
	find("no queue", teststack.AMQP(t), "events-queue", "guard-monitor topology")
	if n := testamqp.Depth(t, broker, "debug"); n != 0 {
		t.Errorf("%d events were published", n)
	}
}

// TestDiagnoseBlockedBroker: a broker without memory answers nobody who publishes. Doctor says
// so at once, and does not wait for it.
func TestDiagnoseBlockedBroker(t *testing.T) {
	own := teststack.StartBroker(t, "alarm")
	broker := own.AMQP(t)
	declare(t, broker)
	own.Control(t, "set_vm_memory_high_watermark", "0")
	found := newPublisher(t, broker, rabbitmq.Config{}).Diagnose(t.Context())
	if len(found) != 1 || found[0].Check != "events-broker" || !strings.Contains(found[0].Problem, "blocked by the broker: low on memory") {
		t.Errorf("found %v", found)
	}
}
