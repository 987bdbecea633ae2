package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/teststack"
)

// hook is a webhook that may be out of order.
type hook struct {
	*httptest.Server
	mu      sync.Mutex
	working bool
	tries   int
	told    []string // services, one for each message that was taken
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct {
		GroupLabels map[string]string `json:"groupLabels"`
	}
	body, _ := io.ReadAll(r.Body)
	err := json.Unmarshal(body, &message)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries++
	if err != nil || !h.working {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	h.told = append(h.told, message.GroupLabels["service"])
}

func (h *hook) work() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.working = true
}

func (h *hook) state() (tries int, told string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tries, strings.Join(h.told, " ")
}

// A kill between the store's commit and the alert does not lose the alert, and
// a restart does not repeat one.
func TestKilledBeforeTheAlert(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]func(*process, *hook) bool{
		"stored":  func(p *process, _ *hook) bool { return p.metric(`belay_monitor_events_total{verdict="overlap"} 1`) },
		"refused": func(_ *process, h *hook) bool { tries, _ := h.state(); return tries > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker, h := teststack.AMQP(t), newHook(t)
			file := settings(t, "listen: 127.0.0.1:0\nreceivers:\n  - {name: night, type: webhook, url: \"${HOOK}/\", group_wait: 0s}\n")
			env := []string{"BELAY_AMQP_URL=" + broker, "BELAY_MONITOR_DB=" + filepath.Join(t.TempDir(), "m.db"), "HOOK=" + h.URL}

			p := start(t, env, "serve", "-config", file)
			p.eventually("healthy", p.healthy)
			publish(t, broker, event("0196f9c4-0000-7000-8000-000000000001"))
			p.eventually("ready to be killed", func() bool { return killed(p, h) })
			check(t, p.cmd.Process.Kill())
			p.wait()
			if _, told := h.state(); told != "" {
				t.Fatalf("told of %s before the kill", told)
			}

			h.work()
			p = start(t, env, "serve", "-config", file)
			p.eventually("the alert", func() bool { _, told := h.state(); return told == "orders" })
			p.eventually("the alert is logged", func() bool {
				return p.metric(`belay_monitor_notifications_pending{receiver="night"} 0`)
			})
			p.stop(syscall.SIGTERM)

			p = start(t, env, "serve", "-config", file)
			p.eventually("healthy", p.healthy)
			other := event("0196f9c4-0000-7000-8000-000000000002")
			other.Service = "stock"
			publish(t, broker, other)
			p.eventually("the other alert", func() bool { _, told := h.state(); return strings.HasSuffix(told, " stock") })
			if _, told := h.state(); told != "orders stock" {
				t.Errorf("told of %s, want orders and stock once each", told)
			}
			p.stop(syscall.SIGTERM)
		})
	}
}

// tail shows what comes, beside the monitor that runs, and no key commands the
// terminal.
func TestTail(t *testing.T) {
	t.Parallel()
	broker := teststack.AMQP(t)
	db := filepath.Join(t.TempDir(), "m.db")
	p := start(t, nil, "serve", "-amqp-url", broker, "-db", db, "-listen", "127.0.0.1:0")
	p.eventually("healthy", p.healthy)
	first, second := event("0196f9c4-0000-7000-8000-000000000001"), event("0196f9c4-0000-7000-8000-000000000002")
	first.Key, second.Key = "order:1\x1b[2J", "order:2\n<script>\u202e"
	publish(t, broker, first)
	p.eventually("the first event is stored", func() bool { return p.metric(`belay_monitor_events_total{verdict="overlap"} 1`) })

	follow := start(t, nil, "tail", "-db", db)
	follow.eventually("the first event", func() bool { return strings.Contains(follow.stdout.String(), `"order:1\x1b[2J"`) })
	publish(t, broker, second)
	follow.eventually("the second event", func() bool {
		return strings.Contains(follow.stdout.String(), `"order:2\n<script>\u202e"`)
	})
	follow.eventually("the incident", func() bool {
		return strings.Contains(follow.stdout.String(), " WARNING incident orders ")
	})
	follow.stop(syscall.SIGINT)
	if out := follow.stdout.String(); strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("tail wrote %q", out)
	}
	last := start(t, nil, "tail", "-db", db, "-n", "1", "-follow=false")
	if code := last.wait(); code != 0 || strings.Count(last.stdout.String(), "\n") != 1 || !strings.Contains(last.stdout.String(), "order:2") {
		t.Errorf("tail -n 1: code %d, %q", code, last.stdout)
	}
	p.stop(syscall.SIGTERM)
}

// withDead returns a broker that has a dead letter for each of the events.
func withDead(t *testing.T, ids ...string) (env []string) {
	t.Helper()
	broker := teststack.AMQP(t)
	env = []string{"BELAY_AMQP_URL=" + broker}
	if code := start(t, env, "topology").wait(); code != 0 {
		t.Fatalf("topology: code %d", code)
	}
	ch := channel(t, broker)
	check(t, ch.Confirm(false))
	for _, id := range ids {
		ev := event(id)
		body, err := ev.MarshalJSON()
		check(t, err)
		dead, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), intake.DeadExchange, rabbit.EventKey(string(ev.Verdict)), true, false,
			amqp.Publishing{Body: body})
		check(t, err)
		dead.Wait()
	}
	return env
}

func TestReplayIsBounded(t *testing.T) {
	env := withDead(t, "1", "2", "3")
	for _, want := range []string{"2 dead letters replayed\n1 more can be replayed\n", "1 dead letters replayed\n", "0 dead letters replayed\n"} {
		replay := start(t, env, "dlq", "replay", "-n", "2", "all")
		if code := replay.wait(); code != 0 || replay.stdout.String() != want {
			t.Errorf("code %d, %q, %q, want %q", code, replay.stdout, replay.stderr, want)
		}
	}
}

func TestReplayOfALetterThatIsNamedTwice(t *testing.T) {
	env := withDead(t, "1")
	list := start(t, env, "dlq", "list")
	list.wait()
	id, _, _ := strings.Cut(list.stdout.String(), " ")
	replay := start(t, env, "dlq", "replay", id, id)
	if code := replay.wait(); code != 0 || replay.stdout.String() != "1 dead letters replayed\n" {
		t.Errorf("replay %s twice: code %d, %q, %q", id, code, replay.stdout, replay.stderr)
	}
}

// A dead letter shows as text, and an event among them can be taken back.
func TestDeadLetters(t *testing.T) {
	broker := teststack.AMQP(t)
	env := []string{"BELAY_AMQP_URL=" + broker}
	p := start(t, env, "-listen", "127.0.0.1:0")
	p.eventually("healthy", p.healthy)
	raw(t, broker, "\x1b[2J{")
	p.eventually("it is dead", func() bool { return p.metric(`belay_consumer_dead_lettered_total{name="monitor"} 1`) })

	list := start(t, env, "dlq", "list")
	list.eventually("the letter", func() bool { return strings.Contains(list.stdout.String(), "1 of 1 dead letters") || list.wait() != 0 })
	id, _, _ := strings.Cut(list.stdout.String(), " ")
	show := start(t, env, "dlq", "show", id)
	if code := show.wait(); code != 0 || !strings.Contains(show.stdout.String(), `\x1b[2J{`) || strings.Contains(show.stdout.String(), "\x1b") {
		t.Errorf("show: code %d, %q", code, show.stdout)
	}
	replay := start(t, env, "dlq", "replay", "all")
	if code := replay.wait(); code != 1 || !strings.Contains(replay.stderr.String(), "1 are no events, or refused, and stay") {
		t.Errorf("replay: code %d, %q", code, replay.stderr)
	}
	p.stop(syscall.SIGTERM)
}
