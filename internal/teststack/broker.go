package teststack

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// A Broker is a RabbitMQ of one test's own, which may be killed.
type Broker struct {
	own      *servers
	url, api string
}

// StartBroker brings up a RabbitMQ and has it stopped when the test ends. Like
// AMQP it skips or fails without a stack.
func StartBroker(tb testing.TB, name string) *Broker {
	tb.Helper()
	setting(tb, "BELAY_AMQP_URL") // where there is a stack, there may be another
	b := &Broker{own: newStack(tb, name)}
	b.own.Stack(tb, "up", "rabbitmq")
	settings := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^export (\w+)='(.*)'$`).FindAllStringSubmatch(b.own.Stack(tb, "env"), -1) {
		settings[m[1]] = m[2]
	}
	b.url, b.api = settings["BELAY_AMQP_URL"], settings["BELAY_AMQP_API"]
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
	b.own.Stack(tb, "kill", "rabbitmq")
}

// Start starts the broker after Kill and waits until it answers.
func (b *Broker) Start(tb testing.TB) {
	tb.Helper()
	b.own.Stack(tb, "start", "rabbitmq")
}

// Control runs rabbitmqctl.
func (b *Broker) Control(tb testing.TB, args ...string) {
	tb.Helper()
	data := filepath.Join(b.own.dir, "rabbitmq")
	stack := filepath.Base(b.own.dir)
	cmd := exec.Command("/usr/lib/rabbitmq/bin/rabbitmqctl", append([]string{"-n", "belay-" + stack + "@localhost"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+data, "RABBITMQ_CONF_ENV_FILE=/dev/null",
		"ERL_EPMD_PORT="+strconv.Itoa(b.own.port+33), "RABBITMQ_NODENAME=belay-"+stack+"@localhost")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("rabbitmqctl %v: %v\n%s", args, err, out)
	}
}
