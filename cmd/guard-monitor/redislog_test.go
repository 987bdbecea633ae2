package main_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// TestRedisClientLogs: what the client of Redis says of a dead node has the form and the
// level of the log.
func TestRedisClientLogs(t *testing.T) {
	broker := teststack.AMQP(t)
	for level, want := range map[string]bool{"debug": true, "info": false} {
		p := start(t, nil, "-amqp-url", broker, "-listen", "127.0.0.1:0", "-redis-nodes", "127.0.0.1:1",
			"-config", settings(t, "log: {format: json, level: "+level+"}\n"))
		const dials = "failed to dial"
		p.eventually("the node is found dead", func() bool {
			return strings.Contains(p.stderr.String(), `"node":"127.0.0.1:1"`) && (!want || strings.Contains(p.stderr.String(), dials))
		})
		p.stop(syscall.SIGTERM)
		if strings.Contains(p.stderr.String(), dials) != want {
			t.Errorf("%s: the client is heard: %t, want %t", level, !want, want)
		}
		for line := range strings.Lines(p.stderr.String()) {
			if !json.Valid([]byte(line)) && !strings.HasPrefix(line, "guard-monitor: ") {
				t.Errorf("%s: not in the log's form: %s", level, line)
			}
		}
	}
}
