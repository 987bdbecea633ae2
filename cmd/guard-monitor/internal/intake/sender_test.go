package intake_test

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

const serviceRights = `^belay\.(events|monitor)$`

func userOf(t *testing.T, broker string) string {
	t.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	return u.User.Username()
}

// A bound lets one user speak for one service.
type bound struct {
	mu           sync.Mutex
	user         string
	errForbidden error
	refuse       bool
	senders      []string // of what was handled
	beats        int
}

func (b *bound) admit(sender, service string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.refuse && sender == b.user && service == event(1).Service {
		return nil
	}
	return b.errForbidden
}

func (b *bound) handle(_ context.Context, _ notify.Event, _ []byte, sender string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.senders = append(b.senders, sender)
	return nil
}

func (b *bound) handled() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.senders
}

func (b *bound) heard() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beats
}

// Two users of the broker, one of them bound to the service: what the other one sends
// in its name, and what names no sender, is refused, events and heartbeats alike.
func TestSendersAreBoundToServices(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	shop, eve := teststack.AMQPUser(t, broker, serviceRights), teststack.AMQPUser(t, broker, serviceRights)
	b := &bound{user: userOf(t, shop), errForbidden: errors.New("not bound")}
	c, _ := consume(t, broker, intake.Config{Admit: b.admit, Heartbeat: func(context.Context, heartbeat.Heartbeat, string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.beats++
	}}, b.handle)
	testwait.Until(t, "it listens", c.Listening)

	forger := newPublisher(t, eve, rabbitmq.Config{})
	publish(t, forger, 1)
	beat(t, forger, 1)
	body, err := event(2).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	testamqp.OnChannel(t, eve, func(ch *amqp.Channel) { // names nobody, and claims to be a replay
		if err := ch.PublishWithContext(t.Context(), rabbit.Exchange, "event.overlap", true, false,
			amqp.Publishing{Body: body, Headers: amqp.Table{intake.SenderHeader: b.user}}); err != nil {
			t.Fatal(err)
		}
	})
	testwait.Until(t, "all three are refused", func() bool { return testmetric.Sum(t, c, "belay_consumer_unbound_total") == 3 })
	testwait.Until(t, "the events are dead letters", func() bool { return testamqp.Depth(t, broker, intake.DeadQueue) == 2 })
	if b.heard() != 0 || len(b.handled()) != 0 {
		t.Errorf("%d heartbeats heard, events of %q handled, want none", b.heard(), b.handled())
	}

	honest := newPublisher(t, shop, rabbitmq.Config{})
	publish(t, honest, 3)
	beat(t, honest, 2)
	testwait.Until(t, "both are taken", func() bool { return len(b.handled()) == 1 && b.heard() == 1 })
	if got := b.handled(); got[0] != b.user {
		t.Errorf("the event is stored as from %q, want %q", got[0], b.user)
	}
}

// A letter that is replayed keeps its first sender, so that a forged one is refused
// again, and one that was refused by mistake is taken.
func TestReplayKeepsTheSender(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	declare(t, broker)
	shop, eve := teststack.AMQPUser(t, broker, serviceRights), teststack.AMQPUser(t, broker, serviceRights)
	b := &bound{user: userOf(t, shop), errForbidden: errors.New("not bound"), refuse: true}
	c, _ := consume(t, broker, intake.Config{Admit: b.admit}, b.handle)
	publish(t, newPublisher(t, shop, rabbitmq.Config{}), 1)
	publish(t, newPublisher(t, eve, rabbitmq.Config{}), 2)
	dead := func(n int) func() bool {
		return func() bool { return testamqp.Depth(t, broker, intake.DeadQueue) == n }
	}
	testwait.Until(t, "both are refused", dead(2))
	b.mu.Lock()
	b.refuse = false
	b.mu.Unlock()
	for replays := range 2 { // the second time of the forged one alone
		n, err := deadletter.Replay(t.Context(), broker, func(*deadletter.Letter) bool { return true })
		if n != 2-replays || err != nil {
			t.Fatalf("replay %d took %d letters: %v", replays, n, err)
		}
		testwait.Until(t, "the forged one is refused again", func() bool {
			return testmetric.Sum(t, c, "belay_consumer_unbound_total") == float64(3+replays) && dead(1)()
		})
	}
	if got := b.handled(); len(got) != 1 || got[0] != b.user {
		t.Errorf("handled events of %q, want one of %q", got, b.user)
	}
	letters, _, err := deadletter.List(t.Context(), broker, 1)
	if err != nil || len(letters) != 1 || letters[0].Sender != userOf(t, eve) {
		t.Errorf("letters %+v, %v, want one of %q", letters, err, userOf(t, eve))
	}
}

// Who may not be known stays unknown.
func TestSentBy(t *testing.T) {
	replayed := amqp.Table{intake.SenderHeader: "shop"}
	for _, tt := range []struct {
		d         amqp.Delivery
		own, want string
	}{
		{amqp.Delivery{}, "", ""},
		{amqp.Delivery{}, "monitor", ""},
		{amqp.Delivery{UserId: "shop"}, "monitor", "shop"},
		{amqp.Delivery{UserId: "monitor"}, "monitor", "monitor"},
		{amqp.Delivery{UserId: "monitor", Headers: replayed}, "monitor", "shop"},
		{amqp.Delivery{UserId: "eve", Headers: replayed}, "monitor", "eve"},
		{amqp.Delivery{Headers: replayed}, "monitor", ""},
		{amqp.Delivery{Headers: replayed}, "", ""},
		{amqp.Delivery{UserId: "monitor", Headers: amqp.Table{intake.SenderHeader: time.Now()}}, "monitor", "monitor"},
	} {
		if got := intake.SentBy(&tt.d, tt.own); got != tt.want {
			t.Errorf("SentBy(%q, %v) for %q = %q, want %q", tt.d.UserId, tt.d.Headers, tt.own, got, tt.want)
		}
	}
}
