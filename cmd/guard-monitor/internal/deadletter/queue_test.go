package deadletter_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Looking changes nothing, replaying takes events only out of the queue.
func TestListAndReplay(t *testing.T) {
	broker, ch := withDead(t, `{"no":"event"}`, event(t), event(t), "\x1b[2J")
	for range 25 { // more often than RabbitMQ 4 would allow by default
		letters, total, err := deadletter.List(t.Context(), broker, 10)
		if err != nil || total != 4 || len(letters) != 4 {
			t.Fatalf("%d of %d letters, %v", len(letters), total, err)
		}
	}
	letters, _, err := deadletter.List(t.Context(), broker, 2)
	if err != nil || len(letters) != 2 {
		t.Fatalf("List with a limit = %v, %v", letters, err)
	}
	first := letters[0]
	if first.Err == nil || first.Reason != "rejected" || first.RoutingKey != "event.overlap" || first.Died.IsZero() {
		t.Errorf("letter %+v", first)
	}
	testwait.Until(t, "4 dead letters", func() bool { return count(t, ch, intake.DeadQueue) == 4 })
	n, err := deadletter.Replay(t.Context(), broker, func(l *deadletter.Letter) bool { return l.Err == nil })
	if err != nil || n != 2 {
		t.Fatalf("Replay = %d, %v, want 2", n, err)
	}
	testwait.Until(t, "2 dead letters", func() bool { return count(t, ch, intake.DeadQueue) == 2 })
	for range 2 {
		d, ok, err := ch.Get(rabbit.Queue, true)
		if err != nil || !ok {
			t.Fatalf("the replayed event is not there: %v", err)
		}
		if string(d.Body) != event(t) || d.MessageId != "m1" || d.Headers["kept"] != "yes" || d.Headers["x-death"] != nil || d.DeliveryMode != amqp.Persistent {
			t.Errorf("replayed %+v", d)
		}
	}
}

// A node of the cluster that is not there does not keep from the letters.
func TestSeveralNodes(t *testing.T) {
	broker, _ := withDead(t, "no event")
	u, err := url.Parse(broker)
	if err != nil {
		t.Fatal("the broker's URL is none")
	}
	u.Host = "127.0.0.1:1," + u.Host
	if letters, total, err := deadletter.List(t.Context(), u.String(), 1); err != nil || total != 1 || len(letters) != 1 {
		t.Errorf("List = %v of %d, %v", letters, total, err)
	}
	u.Host = "127.0.0.1:1,127.0.0.1:2"
	if _, _, err := deadletter.List(t.Context(), u.String(), 1); err == nil ||
		!strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "127.0.0.1:2") {
		t.Errorf("nobody is there: %v", err)
	}
}

// A letter that nobody takes stays where it is.
func TestReplayUnroutable(t *testing.T) {
	broker, ch := withDead(t, event(t))
	if err := ch.QueueUnbind(rabbit.Queue, "event.*", rabbit.Exchange, nil); err != nil {
		t.Fatal(err)
	}
	n, err := deadletter.Replay(t.Context(), broker, func(*deadletter.Letter) bool { return true })
	if n != 0 || err == nil || !strings.Contains(err.Error(), "no queue takes it") {
		t.Errorf("Replay = %d, %v", n, err)
	}
	testwait.Until(t, "1 dead letters", func() bool { return count(t, ch, intake.DeadQueue) == 1 })
}

// The monitor's queue is missing, and another one is bound to the exchange, to
// watch events, say. The letter stays where it is until the queue is back.
func TestReplayKeepsALetterWhileTheQueueIsMissing(t *testing.T) {
	broker, ch := withDead(t, event(t))
	if _, err := ch.QueueDeclare("debug", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("debug", "#", rabbit.Exchange, false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDelete(rabbit.Queue, false, false, false); err != nil {
		t.Fatal(err)
	}
	all := func(*deadletter.Letter) bool { return true }
	n, err := deadletter.Replay(t.Context(), broker, all)
	if n != 0 || err == nil || !strings.Contains(err.Error(), "no queue takes it") || !strings.Contains(err.Error(), rabbit.Queue) {
		t.Errorf("Replay = %d, %v", n, err)
	}
	testwait.Until(t, "the letter is back", func() bool { return count(t, ch, intake.DeadQueue) == 1 })
	if n := count(t, ch, "debug"); n != 0 {
		t.Errorf("the other queue has %d letters, want none", n)
	}

	if err := intake.Declare(t.Context(), broker); err != nil {
		t.Fatal(err)
	}
	if n, err := deadletter.Replay(t.Context(), broker, all); n != 1 || err != nil {
		t.Errorf("Replay with the queue = %d, %v", n, err)
	}
	if n := count(t, ch, rabbit.Queue); n != 1 {
		t.Errorf("the monitor's queue has %d events, want 1", n)
	}
}

// Letters that stay hide none of those behind them, however many they are.
func TestLettersBehindMany(t *testing.T) {
	broker, ch := withDead(t)
	const many = deadletter.MaxLetters + 1
	for range many {
		err := ch.PublishWithContext(t.Context(), "", intake.DeadQueue, true, false, amqp.Publishing{Body: []byte("no event")})
		if err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the letters are there", func() bool { return count(t, ch, intake.DeadQueue) == many })
	kill(t, ch, event(t))
	testwait.Until(t, "one letter more", func() bool { return count(t, ch, intake.DeadQueue) == many+1 })

	sum := sha256.Sum256([]byte(event(t)))
	id := hex.EncodeToString(sum[:])[:12]
	found, err := deadletter.Find(t.Context(), broker, []string{id, "nobody"})
	if err != nil || len(found) != 1 || found[id].Event.Service != "orders" {
		t.Errorf("Find = %v, %v", found, err)
	}
	if n, err := deadletter.Replay(t.Context(), broker, func(l *deadletter.Letter) bool { return l.ID == id }); n != 1 || err != nil {
		t.Errorf("Replay = %d, %v", n, err)
	}
	testwait.Until(t, "the others are there", func() bool { return count(t, ch, intake.DeadQueue) == many })
}

// Letters that die again are not replayed for ever.
func TestReplayDiesAgain(t *testing.T) {
	broker, ch := withDead(t, "no event", "no event")
	reader, err := intake.New(broker, intake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- reader.Run(ctx, func(context.Context, notify.Event, []byte, string) error { return nil })
	}()
	n, err := deadletter.Replay(t.Context(), broker, func(*deadletter.Letter) bool { return true })
	if n != 2 || err != nil {
		t.Errorf("Replay = %d, %v", n, err)
	}
	testwait.Until(t, "2 dead letters", func() bool { return count(t, ch, intake.DeadQueue) == 2 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

func TestNoBroker(t *testing.T) {
	const secret = "hunter2"
	for _, broker := range []string{"", "http://u:" + secret + "@h/", "amqp://u:" + secret + "@127.0.0.1:1/"} {
		if _, _, err := deadletter.List(t.Context(), broker, 1); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("List: %v", err)
		}
	}
	if _, _, err := deadletter.List(t.Context(), teststack.AMQP(t), 1); err == nil || !strings.Contains(err.Error(), "topology") {
		t.Errorf("List without a queue: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := deadletter.List(ctx, "amqp://127.0.0.1:1/", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("List after the end: %v", err)
	}
}

// withDead returns a broker whose dead letters are bodies.
func withDead(t *testing.T, bodies ...string) (string, *amqp.Channel) {
	t.Helper()
	broker := teststack.AMQP(t)
	if err := intake.Declare(t.Context(), broker); err != nil {
		t.Fatal(err)
	}
	conn, err := amqp.Dial(broker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		kill(t, ch, body)
	}
	testwait.Until(t, "all are dead letters", func() bool { return count(t, ch, intake.DeadQueue) == len(bodies) })
	return broker, ch
}

// kill publishes a message and makes a dead letter of it.
func kill(t *testing.T, ch *amqp.Channel, body string) {
	t.Helper()
	err := ch.PublishWithContext(t.Context(), rabbit.Exchange, "event.overlap", true, false, amqp.Publishing{
		MessageId: "m1", Headers: amqp.Table{"kept": "yes"}, Body: []byte(body),
	})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "a message is there", func() bool {
		d, ok, err := ch.Get(rabbit.Queue, false)
		if err != nil {
			t.Fatal(err)
		}
		return ok && d.Reject(false) == nil
	})
}

func count(t *testing.T, ch *amqp.Channel, queue string) int {
	t.Helper()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q.Messages
}

func event(t *testing.T) string {
	t.Helper()
	raw, err := notify.Event{
		ID: "1", Service: "orders", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused, Key: "order:1",
		CaughtAt: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Count: 1,
	}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(slices.Clone(raw))
}
