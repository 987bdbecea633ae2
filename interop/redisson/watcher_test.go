package interop_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/internal/testwait"
)

// watcher is a guard-monitor that runs as a process, and answers over HTTP.
type watcher struct{ address string }

// entry is one of the monitor's timeline.
type entry struct {
	Kind    string
	Numbers map[string]int64
}

// explained is an incident of the monitor.
type explained struct {
	Cause, Confidence string
	Evidence          []struct{ Text string }
}

// startMonitor runs guard-monitor until the test ends. It takes events from broker and
// looks at the Redis nodes of addrs.
func startMonitor(t *testing.T, broker string, addrs []string) watcher {
	t.Helper()
	program := filepath.Join(t.TempDir(), "guard-monitor")
	if err := testproc.Build("../../cmd/guard-monitor", ".", program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-listen", "127.0.0.1:0", "-db", filepath.Join(t.TempDir(), "monitor.db"), "-redis-nodes", strings.Join(addrs, ","))
	cmd.Env = append(cmd.Environ(), "BELAY_AMQP_URL="+broker)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, after, ok := strings.Cut(lines.Text(), "listening on "); ok {
				address <- after
			}
		}
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	select {
	case a := <-address:
		testwait.Until(t, "guard-monitor takes events", func() bool { return get(t, a+"/healthz", nil) == http.StatusOK })
		return watcher{a}
	case <-ended:
		t.Fatal("guard-monitor has ended")
	case <-time.After(limit):
		t.Fatal("guard-monitor does not listen")
	}
	return watcher{}
}

// timeline returns what the monitor has seen of one kind.
func (w watcher) timeline(t *testing.T, kind string) []entry {
	t.Helper()
	return list[entry](t, w, "timeline", url.Values{"kind": {kind}})
}

// incidents returns the monitor's incidents.
func (w watcher) incidents(t *testing.T, query url.Values) []explained {
	t.Helper()
	return list[explained](t, w, "incidents", query)
}

func list[T any](t *testing.T, w watcher, route string, query url.Values) []T {
	t.Helper()
	var body struct{ Items []T }
	address := w.address + "/api/v1/" + route + "?" + query.Encode()
	if code := get(t, address, &body); code != http.StatusOK {
		t.Fatalf("GET %s: %d", address, code)
	}
	return body.Items
}

// get returns the status of an address, and decodes its JSON into body unless that
// is nil.
func get(t *testing.T, address string, body any) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // no connection that outlives the test
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body == nil {
		return response.StatusCode
	}
	if err := json.NewDecoder(response.Body).Decode(body); err != nil {
		t.Fatalf("GET %s: %v", address, err)
	}
	return response.StatusCode
}
