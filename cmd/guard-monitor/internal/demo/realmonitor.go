package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// realMonitor is a guard-monitor that runs as a process of its own, and the
// webhook that it tells of incidents.
type realMonitor struct {
	desk
	log     lines // its standard error
	process *exec.Cmd
	exited  chan error
	webhook *http.Server
}

const monitorSettings = `listen: 127.0.0.1:0
redis:
  - name: stack
    nodes: ["%s"]
receivers:
  - name: people
    type: webhook
    url: http://%s/
    group_wait: 0s
`

// startRealMonitor starts the program, with its files in dir, and waits until it
// is at work. It takes the broker from BELAY_AMQP_URL.
func startRealMonitor(ctx context.Context, program, dir string, redisAddrs []string) (_ *realMonitor, err error) {
	m := &realMonitor{exited: make(chan error, 1)}
	m.mail, m.cause, m.patience = make(chan message, mailbox), incident.Failover, alertTimeout
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	ln, err := listenLocal(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.serveWebhook(ln)
	settings := filepath.Join(dir, "guard-monitor.yaml")
	text := fmt.Sprintf(monitorSettings, strings.Join(redisAddrs, `", "`), ln.Addr())
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return nil, err
	}
	db := filepath.Join(dir, "monitor.db")
	m.process = exec.Command(program, "-config", settings, "-db", db) //nolint:gosec,noctx // who runs the demo names it; close ends it
	m.process.Stdout, m.process.Stderr = &m.lines, &m.log
	if err := m.process.Start(); err != nil {
		m.process = nil
		return nil, fmt.Errorf("start guard-monitor: %w", err)
	}
	go func() { m.exited <- m.process.Wait() }()
	if err := m.ready(ctx, len(redisAddrs)); err != nil {
		return nil, err
	}
	if m.store, err = store.Open(ctx, db); err != nil {
		return nil, err // and not m, which is closed then
	}
	return m, nil
}

var listening = regexp.MustCompile(`listening on (http://\S+)`)

// ready waits until the monitor is with the broker and has seen the Redis nodes.
func (m *realMonitor) ready(ctx context.Context, nodes int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.patience, errors.New("it does not get ready"))
	defer cancel()
	err := until(ctx, "guard-monitor", func() (bool, error) {
		found := listening.FindStringSubmatch(strings.Join(m.log.all(), ""))
		if len(m.exited) > 0 {
			return false, errors.New("guard-monitor has ended")
		}
		return found != nil && get(ctx, found[1]+"/healthz") != "" &&
			strings.Count(get(ctx, found[1]+"/metrics"), "\nbelay_monitor_redis_node_up{") == nodes, nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(m.log.all(), ""))
	}
	return nil
}

// get returns the body of a page, empty unless the answer is 200.
func get(ctx context.Context, url string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return ""
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// serveWebhook takes the messages.
func (m *realMonitor) serveWebhook(ln net.Listener) {
	m.webhook = &http.Server{ReadTimeout: closeTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Alerts []message `json:"alerts"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, a := range body.Alerts {
			m.deliver(a)
		}
	})}
	go func() { _ = m.webhook.Serve(ln) }()
}

func (m *realMonitor) close() error {
	var errs []error
	if m.process != nil {
		_ = m.process.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-m.exited:
			errs = append(errs, err)
		case <-time.After(closeTimeout):
			errs = append(errs, errors.New("guard-monitor does not end"), m.process.Process.Kill())
		}
	}
	if m.store != nil {
		errs = append(errs, m.store.Close())
	}
	if m.webhook != nil {
		errs = append(errs, m.webhook.Close())
	}
	return errors.Join(errs...)
}
