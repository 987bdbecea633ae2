package main_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// Of two users of the broker the settings bind one to the service. An event of the
// other one is a dead letter, and dlq says why and does not replay it.
func TestSenders(t *testing.T) {
	broker := teststack.AMQP(t)
	const rights = `^belay\.(events|monitor)$`
	shop, eve := teststack.AMQPUser(t, broker, rights), teststack.AMQPUser(t, broker, rights)
	name := func(broker string) string {
		u, err := url.Parse(broker)
		check(t, err)
		return u.User.Username()
	}
	file := filepath.Join(t.TempDir(), "monitor.yaml")
	check(t, os.WriteFile(file, fmt.Appendf(nil, "senders:\n  - name: %s\n    services: [%s]\n", name(shop), event("1").Service), 0o600))
	args := []string{"-config", file, "-amqp-url", broker}

	p := start(t, nil, append(args, "-listen", "127.0.0.1:0")...)
	p.eventually("healthy", p.healthy)
	good := event("0196f9c4-0000-7000-8000-000000000001")
	publish(t, shop, good)
	publish(t, eve, event("0196f9c4-0000-7000-8000-000000000002"))
	p.eventually("one is stored and one refused", func() bool {
		return p.metric(`belay_monitor_events_total{verdict="overlap"} 1`) && p.metric(`belay_consumer_unbound_total{name="monitor"} 1`)
	})
	if _, body := p.get("/events/" + good.ID); !strings.Contains(body, name(shop)) {
		t.Errorf("the page of the event does not name %s:\n%s", name(shop), body)
	}

	list := start(t, nil, append([]string{"dlq", "list"}, args...)...)
	if code := list.wait(); code != 0 || !strings.Contains(list.stdout.String(), "refused event overlap") {
		t.Errorf("list: code %d, %q", code, list.stdout)
	}
	id, _, _ := strings.Cut(list.stdout.String(), " ")
	show := start(t, nil, append(append([]string{"dlq", "show"}, args...), id)...)
	if code := show.wait(); code != 0 || !strings.Contains(show.stdout.String(), fmt.Sprintf("the sender %q may not speak", name(eve))) {
		t.Errorf("show: code %d, %q", code, show.stdout)
	}
	replay := start(t, nil, append(append([]string{"dlq", "replay"}, args...), "all")...)
	if code := replay.wait(); code != 1 || replay.stdout.String() != "0 dead letters replayed\n" {
		t.Errorf("replay: code %d, %q, %q", code, replay.stdout, replay.stderr)
	}
	p.stop(syscall.SIGTERM)
}
