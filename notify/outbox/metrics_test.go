package outbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/notify/outbox"
)

func TestAgeOfTheOldestEvent(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{})
		publish(t, o, 1, 2)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(o)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "belay_outbox_oldest_event_timestamp_seconds" {
				at := family.GetMetric()[0].GetGauge().GetValue()
				if age := time.Since(time.UnixMilli(int64(at * 1000))); age < -time.Minute || age > time.Minute {
					t.Errorf("the event is %v old, want about none", age)
				}
				return
			}
		}
		t.Error("no such metric")
	})
}

func TestMetricsOfSeveralOutboxes(t *testing.T) {
	db := openSQLite(t)
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"a", "b"} {
		registry.MustRegister(open(t, db, outbox.Config{Name: name}))
	}
	if n := gather(t, registry)["belay_outbox_backlog"]; n != 2 {
		t.Errorf("%d outboxes tell their backlog, want 2", n)
	}
	if n := gather(t, registry)["belay_outbox_oldest_event_timestamp_seconds"]; n != 0 {
		t.Errorf("%d outboxes tell of an oldest event, but there is none", n)
	}
	drop(t, db)
	found := gather(t, registry)
	if found["belay_outbox_backlog"] != 0 || found["belay_outbox_lost_total"] != 2 {
		t.Errorf("without the table: %v; want the counters alone", found)
	}
}

// gather counts the metrics of each name.
func gather(t *testing.T, registry *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, family := range families {
		counts[family.GetName()] = len(family.GetMetric())
	}
	return counts
}

// metrics expects each line of want among the metrics of o.
func metrics(t *testing.T, o *outbox.Outbox, want string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			got[fmt.Sprintf("%s{name=%q} %v", family.GetName(), m.GetLabel()[0].GetValue(), value)] = true
		}
	}
	for line := range strings.Lines(strings.TrimSpace(want)) {
		if line = strings.TrimSpace(line); !got[line] {
			t.Errorf("no metric %s among %v", line, got)
		}
	}
}
