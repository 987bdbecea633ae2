package intake_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// TestDiagnose: each right that is missing is found, no queue is made, and no message is
// taken.
func TestDiagnose(t *testing.T) {
	broker := teststack.AMQP(t)
	user := teststack.AMQPUser(t, broker, "^$")
	const own = `^belay\.`
	want := func(check, says string) {
		t.Helper()
		found := intake.Diagnose(t.Context(), user)
		if check == "" && len(found) == 0 {
			return
		}
		if len(found) != 1 || !strings.Contains(found[0].String(), check) || !strings.Contains(found[0].String(), says) {
			t.Errorf("found %v, want %s that says %q", found, check, says)
		}
	}
	stranger := strings.Replace(user, ":test@", ":wrong@", 1)
	if found := intake.Diagnose(t.Context(), stranger); len(found) != 1 || found[0].Check != "events-broker" || strings.Contains(found[0].String(), "wrong@") {
		t.Errorf("found %v, want events-broker", found)
	}
	teststack.Permit(t, user, own, own, own)
	want("warning events-queue", "look for ")
	want("warning events-queue", "look for ") // nothing was made
	if err := intake.Declare(t.Context(), broker); err != nil {
		t.Fatal(err)
	}
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		if err := ch.PublishWithContext(t.Context(), "", rabbit.Queue, true, false, amqp.Publishing{}); err != nil {
			t.Fatal(err)
		}
	})
	testwait.Until(t, "a message waits", func() bool { return testamqp.Depth(t, broker, rabbit.Queue) == 1 })
	want("", "")
	teststack.Permit(t, user, "^$", own, own)
	want("error events-rights", "declare exchange")
	teststack.Permit(t, user, own, "^$", own)
	want("error events-rights", "belay")
	teststack.Permit(t, user, own, own, "^$")
	want("error events-rights", "belay")
	teststack.Permit(t, user, own, own, `^belay\.(events|dead|monitor\.heartbeats)$`)
	want("error events-rights", "read belay.monitor")
	testamqp.OnChannel(t, broker, func(ch *amqp.Channel) {
		message, ok, err := ch.Get(rabbit.Queue, true)
		if err != nil || !ok || message.Redelivered {
			t.Errorf("the message: %v, redelivered %v, %v", ok, message.Redelivered, err)
		}
	})
}
