package chaos_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// A way is that of the events from the outbox to the store of guard-monitor, as it is
// in the world: over a broker that both reach by a network of their own.
type way struct {
	t        *report
	broker   string
	services *testamqp.Proxy
	behind   *testamqp.Proxy // between broker and monitor
	through  string          // the broker's URL for services
	monitor  *monitor
}

func newWay(t *report, cluster *teststack.Cluster, program *program) *way {
	w := &way{t: t, broker: teststack.AMQP(t)}
	w.services, w.through = testamqp.NewProxy(t, w.broker)
	var url string
	w.behind, url = testamqp.NewProxy(t, w.broker)
	w.monitor = newMonitor(t, url, cluster, program)
	return w
}

// A program is guard-monitor, which is being built.
type program struct {
	path  string
	built chan struct{}
	err   error // to be read when it is built
}

func buildMonitor(t *report) *program {
	p := &program{path: filepath.Join(t.TempDir(), "guard-monitor"), built: make(chan struct{})}
	go func() {
		defer close(p.built)
		p.err = testproc.Build("../../cmd/guard-monitor", ".", p.path)
	}()
	t.Cleanup(func() { <-p.built }) // before its folder goes
	return p
}

// hurt breaks the connections to the broker of the services or of the monitor, for a
// while.
func (w *way) hurt(s step) {
	link := w.services
	if s.Whom%2 == 1 {
		link = w.behind
	}
	wait := time.After(s.For)
	switch s.Kind {
	case linkCut:
		link.Cut()
	case linkAway: // not refused: the port could be another's by the time that it is needed again
		link.BeSilent()
		<-wait
		link.Heal(w.t)
		link.Cut()
	case linkMute: // what was said arrives, the confirms do not
		release := link.Hold()
		<-wait
		release()
	}
}

// deliver relays what workers that were killed have left behind, and returns what the
// monitor has when it has all that was stored, or a while later.
func (w *way) deliver(db *gorm.DB, want map[string]*handed) (events []notify.Event) {
	w.relay(db)
	var all []any
	w.t.await("the monitor has each event that was stored", func() bool {
		events = w.monitor.events()
		have := make(map[string]bool)
		for _, ev := range events {
			have[ev.ID] = true
		}
		for id, e := range want {
			if e.stored && !have[id] {
				return false
			}
		}
		return true
	})
	for _, ev := range events {
		all = append(all, ev)
	}
	w.t.keepJSON(eventsFile, all...)
	return events
}

func (w *way) relay(db *gorm.DB) {
	broker, err := rabbitmq.New(w.broker, rabbitmq.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	o, err := outbox.New(db, outbox.Config{Relay: broker})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.await("the outbox is empty", func() bool {
		var n int64
		err := db.Table("belay_outbox").Count(&n).Error
		return err == nil && n == 0
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := o.Close(ctx); err != nil {
		w.t.Error(err)
	}
	if err := broker.Close(ctx); err != nil {
		w.t.Error(err)
	}
}

// A monitor is a guard-monitor in a process of its own, with a store that outlives it.
type monitor struct {
	t       *report
	program string
	dir     string
	cmd     *exec.Cmd
	exited  chan struct{}
	url     string
}

func newMonitor(t *report, broker string, cluster *teststack.Cluster, p *program) *monitor {
	m := &monitor{t: t, dir: t.TempDir()}
	settings := fmt.Sprintf("amqp_url: %s\ndb: %s\nlisten: 127.0.0.1:0\nredis:\n  - name: chaos\n    nodes: [%s]\n",
		broker, filepath.Join(m.dir, "monitor.db"), strings.Join(cluster.Addrs, ", "))
	if err := os.WriteFile(m.settings(), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if <-p.built; p.err != nil {
		t.Fatal(p.err)
	}
	t.Cleanup(m.kill)
	m.program = cmp.Or(os.Getenv(olderMonitorName), p.path)
	m.start()
	m.program = p.path
	t.await("guard-monitor reads its queue", func() bool { code, _ := m.get("/healthz"); return code == http.StatusOK })
	return m
}

func (m *monitor) settings() string { return filepath.Join(m.dir, "guard-monitor.yaml") }

// start starts the process and waits until it listens.
func (m *monitor) start() {
	m.cmd = exec.Command(m.program, "-config", m.settings())
	m.cmd.Dir, m.cmd.Env = m.dir, []string{"HOME=" + m.dir}
	stderr, err := m.cmd.StderrPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.exited = make(chan struct{})
	listens := make(chan string, 1)
	log := m.t.file("guard-monitor." + fmt.Sprint(m.cmd.Process.Pid) + ".log")
	go func(cmd *exec.Cmd, exited chan struct{}) {
		defer close(exited)
		defer log.Close()
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if url, found := strings.CutPrefix(lines.Text(), "guard-monitor: listening on "); found {
				listens <- url
			}
		}
		_ = cmd.Wait()
	}(m.cmd, m.exited)
	select {
	case m.url = <-listens:
	case <-m.exited:
		m.t.Fatalf("guard-monitor has ended: %v", m.cmd.ProcessState)
	case <-time.After(time.Minute):
		m.t.Fatal("guard-monitor does not listen")
	}
}

func (m *monitor) kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		<-m.exited
	}
}

func (m *monitor) get(path string) (code int, body []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		return 0, nil
	}
	return res.StatusCode, body
}

// events returns all that the monitor has stored.
func (m *monitor) events() (all []notify.Event) {
	for before := ""; ; {
		code, body := m.get("/api/v1/events?limit=1000" + before)
		if code != http.StatusOK {
			return nil
		}
		var page struct {
			Items []struct {
				Seq   int64        `json:"seq"`
				Event notify.Event `json:"event"`
			} `json:"items"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			m.t.Fatalf("events of guard-monitor: %v", err)
		}
		if len(page.Items) == 0 {
			return all
		}
		for _, i := range page.Items {
			all = append(all, i.Event)
		}
		before = fmt.Sprintf("&before=%d", page.Items[len(page.Items)-1].Seq)
	}
}
