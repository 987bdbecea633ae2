package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// The broker sends an event to the dead letters since whoever had it in hand
// crashed again and again. The next guard-monitor shows it in its metrics, and the
// rule fires on these.
func TestRuleFiresOnDeadLettersOfTheBroker(t *testing.T) {
	broker := teststack.AMQP(t)
	check(t, intake.Declare(t.Context(), broker))
	publish(t, broker, event("0196f9c4-0000-7000-8000-000000000001"))
	dead := channel(t, broker)
	testwait.Until(t, "the event is dead", func() bool {
		crashWithAnEvent(t, broker)
		q, err := dead.QueueDeclarePassive(intake.DeadQueue, true, false, false, false, nil)
		check(t, err)
		return q.Messages == 1
	})

	p := start(t, nil, "-amqp-url", broker, "-listen", "127.0.0.1:0")
	p.eventually("the letter is counted", func() bool { return p.metric(`belay_consumer_dead_letters{name="monitor"} 1`) })
	if !p.metric(`belay_consumer_dead_lettered_total{name="monitor"} 0`) {
		t.Error("guard-monitor has sent the letter there itself")
	}
	_, metrics := p.get("/metrics")
	p.stop(syscall.SIGTERM)
	expectAlert(t, metrics, `ALERTS{alertname="BelayDeadLetters", alertstate="firing", name="monitor", severity="warning"}`)
}

// crashWithAnEvent ends a connection that has an event, if there is one, and did
// not acknowledge it.
func crashWithAnEvent(t *testing.T, broker string) {
	t.Helper()
	conn, err := amqp.Dial(broker)
	check(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	check(t, err)
	_, _, err = ch.Get(rabbit.Queue, false)
	check(t, err)
}

// expectAlert fails the test unless the rules make the series alert of the
// consumer's metrics, as long as these stay as they are.
func expectAlert(t *testing.T, metrics, alert string) {
	t.Helper()
	rules, err := filepath.Abs(filepath.Join(deploy, "prometheus", "belay.rules.yaml"))
	check(t, err)
	var test strings.Builder
	fmt.Fprintf(&test, "rule_files: [%q]\ntests:\n  - interval: 1m\n    input_series:\n", rules)
	for line := range strings.Lines(metrics) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(series, "belay_consumer_") {
			fmt.Fprintf(&test, "      - {series: %q, values: %q}\n", series, value+"x10")
		}
	}
	fmt.Fprintf(&test, "    promql_expr_test:\n      - {expr: %q, eval_time: 5m, exp_samples: [{labels: %q, value: 1}]}\n", alert, alert)
	file := filepath.Join(t.TempDir(), "test.yaml")
	check(t, os.WriteFile(file, []byte(test.String()), 0o600))
	out, err := exec.Command(teststack.Program(t, "promtool", "prometheus"), "test", "rules", file).CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s\n%s", err, out, &test)
	}
}
