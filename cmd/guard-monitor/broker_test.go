package main_test

import (
	"bufio"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

func TestEvent(t *testing.T) {
	broker := teststack.AMQP(t)
	db := t.TempDir() + "/monitor.db"
	args := []string{"-listen", "127.0.0.1:0", "-db", db}
	env := []string{"BELAY_AMQP_URL=" + broker}
	ev := event("0196f9c4-0000-7000-8000-000000000001")
	ev.Key = "order:1\n\x1b[2J<script>"

	p := start(t, env, args...)
	p.eventually("healthy", p.healthy)
	if _, body := p.get("/"); !strings.Contains(body, "No event yet") {
		t.Errorf("page without events: %s", body)
	}
	publish(t, broker, ev, ev) // as when a confirm is lost
	p.eventually("the duplicate is counted", func() bool { return p.metric("belay_monitor_duplicates_total 1") })
	checkAlert(t, p, ev)
	if !p.metric(`belay_monitor_events_total{verdict="overlap"} 1`) {
		t.Error("the event is not counted once")
	}
	checkPage(t, p, ev)
	p.stop(syscall.SIGTERM)

	// A restart knows what was there, and alerts only of what is new.
	p = start(t, env, args...)
	p.eventually("healthy", p.healthy)
	checkPage(t, p, ev)
	second := event("0196f9c4-0000-7000-8000-000000000002")
	publish(t, broker, ev, second)
	p.eventually("the second event is stored", func() bool {
		return p.metric(`belay_monitor_events_total{verdict="overlap"} 1`)
	})
	p.eventually("the duplicate is counted", func() bool { return p.metric("belay_monitor_duplicates_total 1") })
	checkAlert(t, p, second)
	p.stop(syscall.SIGINT)
}

// checkAlert expects exactly one line on standard output, which tells of ev.
func checkAlert(t *testing.T, p *process, ev notify.Event) {
	t.Helper()
	p.eventually("an alert line", func() bool { return strings.Contains(p.stdout.String(), "\n") })
	got := p.stdout.String()
	if !strings.HasPrefix(got, "2026-05-04T03:02:01.500Z WARNING overlap orders/orders-1 ") ||
		!strings.HasSuffix(got, words.English.Event(ev)+"\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("standard output %q, want one alert line for %q", got, ev.Key)
	}
}

func checkPage(t *testing.T, p *process, ev notify.Event) {
	t.Helper()
	code, body := p.get("/")
	if code != 200 || !strings.Contains(body, "/events/"+ev.ID) || strings.Count(body, "/events/") != 1 {
		t.Errorf("page: code %d, body %s", code, body)
	}
	if strings.Contains(body, "<script>") {
		t.Errorf("the page has markup from a key: %s", body)
	}
}

// What cannot be decoded goes to the dead letters and holds nothing up.
func TestUndecodableMessage(t *testing.T) {
	broker := teststack.AMQP(t)
	p := start(t, nil, "-amqp-url", broker, "-listen", "127.0.0.1:0")
	p.eventually("healthy", p.healthy)
	ch := channel(t, broker)
	for _, body := range []string{"", "{", "\xff\x00", `{"specversion":"1.0"}`} {
		send(t, ch, body)
	}
	ev := event("0196f9c4-0000-7000-8000-000000000003")
	publish(t, broker, ev)
	p.eventually("the event behind them is stored", func() bool {
		return p.metric(`belay_monitor_events_total{verdict="overlap"} 1`)
	})
	p.eventually("they are counted", func() bool { return p.metric(`belay_consumer_dead_lettered_total{name="monitor"} 4`) })
	p.eventually("they are in the queue of dead letters", func() bool {
		q, err := ch.QueueDeclarePassive(intake.DeadQueue, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		return q.Messages == 4
	})
	checkAlert(t, p, ev)
	p.stop(syscall.SIGTERM)
}

// A broker that does not answer is named, without its password, and asked
// until it does.
func TestBrokerComesLate(t *testing.T) {
	t.Parallel()
	broker, err := url.Parse(teststack.AMQP(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := newProxy(t, broker.Host)
	secret, _ := broker.User.Password()
	late := *broker
	late.Host = proxy.addr

	p := start(t, nil, "-amqp-url", late.String(), "-listen", "127.0.0.1:0")
	if code, body := p.get("/healthz"); code != 503 || !strings.Contains(body, `"broker":"not connected"`) {
		t.Errorf("health without a broker: %d %s", code, body)
	}
	if code, body := p.get("/"); code != 200 || !strings.Contains(body, "The broker does not answer") {
		t.Errorf("page without a broker: %d %s", code, body)
	}
	p.eventually("the broker is named", func() bool { return lineWith(p.stderr.String(), "server=rabbitmq", proxy.addr) })

	proxy.open()
	p.eventually("healthy with a broker", p.healthy)
	proxy.close()
	p.eventually("failing without it", func() bool { return !p.healthy() })
	proxy.open()
	p.eventually("healthy again", p.healthy)
	ev := event("0196f9c4-0000-7000-8000-000000000004")
	publish(t, broker.String(), ev)
	p.eventually("the event is stored", func() bool { return p.metric(`belay_monitor_events_total{verdict="overlap"} 1`) })
	checkAlert(t, p, ev)
	p.stop(syscall.SIGTERM)
	if got := p.stderr.String(); strings.Contains(got, ":"+secret+"@") {
		t.Errorf("standard error shows the password: %s", got)
	}
}

// A heartbeat is heard, and is no dead letter.
func TestHeartbeat(t *testing.T) {
	broker := teststack.AMQP(t)
	p := start(t, nil, "-amqp-url", broker, "-listen", "127.0.0.1:0")
	p.eventually("it listens", func() bool { return p.metric(`belay_consumer_listening{name="monitor"} 1`) })
	publisher, err := rabbitmq.New(broker, rabbitmq.Config{Timeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	err = publisher.PublishHeartbeat(t.Context(), heartbeat.Heartbeat{
		ID: "0196f9c4-0000-7000-8000-000000000009", Service: "orders", Instance: "orders-1", At: time.Now(), Interval: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.eventually("the heartbeat is heard", func() bool { return p.metric("belay_monitor_heartbeats_total 1") })
	if !p.metric(`belay_consumer_dead_lettered_total{name="monitor"} 0`) {
		t.Error("the heartbeat went to the dead letters")
	}
	if err := publisher.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.stop(syscall.SIGTERM)
}

func TestStopWithoutBroker(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := start(t, nil, "-amqp-url", deadURL, "-listen", "127.0.0.1:0")
		p.eventually("the broker is named", func() bool { return lineWith(p.stderr.String(), "server=rabbitmq", "127.0.0.1:1 ") })
		p.stop(sig)
		if got := p.stderr.String(); strings.Contains(got, password) {
			t.Errorf("standard error shows the password: %s", got)
		}
	}
}

func publish(t *testing.T, broker string, events ...notify.Event) {
	t.Helper()
	publisher, err := rabbitmq.New(broker, rabbitmq.Config{Timeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if err := publisher.Publish(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := publisher.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// raw publishes a message as it is.
func raw(t *testing.T, broker, body string) {
	t.Helper()
	send(t, channel(t, broker), body)
}

func send(t *testing.T, ch *amqp.Channel, body string) {
	t.Helper()
	err := ch.PublishWithContext(t.Context(), rabbit.Exchange, "event.overlap", true, false, amqp.Publishing{Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
}

// channel returns a plain channel to the broker.
func channel(t *testing.T, broker string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(broker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// lineWith reports whether one line of s has all words.
func lineWith(s string, words ...string) bool {
	for lines := bufio.NewScanner(strings.NewReader(s)); lines.Scan(); {
		has := true
		for _, w := range words {
			has = has && strings.Contains(lines.Text(), w)
		}
		if has {
			return true
		}
	}
	return false
}

func event(id string) notify.Event {
	return notify.Event{
		ID: id, Service: "orders", Instance: "orders-1", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
		Key: "order:1", CaughtAt: time.Date(2026, 5, 4, 3, 2, 1, 5e8, time.UTC), Count: 1,
	}
}
