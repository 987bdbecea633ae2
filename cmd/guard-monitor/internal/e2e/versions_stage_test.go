package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// versions is a stage whose instances and monitors are of two commits. It reads the monitor by its
// API: to open the file would upgrade it.
type versions struct {
	*stage

	older                    string // runs as an instance of the older commit
	olderMonitor, newMonitor string
	settings, file, copied   string
	url                      string // of the monitor that runs
	shop                     *outbox.Outbox

	known               bool           // the older monitor knows the verdicts of this commit
	deleted             string         // the incident of the locks that were deleted
	newer               []notify.Event // of verdicts that the older monitor does not know
	posted, newerPosted notify.Event

	mu    sync.Mutex
	noted map[string]bool // reported events, by their ids
}

func newVersions(t *testing.T, older, olderMonitor string) *versions {
	t.Helper()
	v := &versions{
		stage: newStage(t), older: older, olderMonitor: olderMonitor, newMonitor: build(t, "github.com/belaygo/belay/cmd/guard-monitor"),
		noted:  make(map[string]bool),
		newer:  []notify.Event{deadLetter("shop"), undecidedCall("shop")},
		posted: anEvent("posted"), newerPosted: deadLetter("posted"),
	}
	v.settings = v.people.reachable(t, v.cluster.Addrs)
	v.file, v.copied = filepath.Join(t.TempDir(), "monitor.db"), filepath.Join(t.TempDir(), "copy.db")
	text, err := os.ReadFile(v.settings)
	if err != nil {
		t.Fatal(err)
	}
	more := "    group_interval: 1s\ningest:\n  - {name: posts, token: " + postToken + ", services: [posted]}\n"
	if err := os.WriteFile(v.settings, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

// startMonitor starts a guard-monitor, whose log is among its lines.
func (v *versions) startMonitor(program string) *process {
	v.t.Helper()
	return start(v.t, "guard-monitor", v.env, "sh", "-c", `exec "$0" "$@" 2>&1`, program, "-db", v.file, "-config", v.settings)
}

// serve starts the guard-monitor that events are for, and waits until it takes them.
func (v *versions) serve(program string) {
	v.t.Helper()
	v.monitor = v.startMonitor(program)
	const listening = "guard-monitor: listening on "
	line := v.monitor.Await("its address", func(line string) bool { return strings.HasPrefix(line, listening) })
	v.url = strings.TrimPrefix(line, listening)
	testwait.Until(v.t, "the monitor is healthy", func() bool { code, _ := v.request("/healthz"); return code == http.StatusOK })
}

// command runs a command of guard-monitor, and returns what it says.
func (v *versions) command(program string, args ...string) string {
	v.t.Helper()
	out, err := v.try(program, args...)
	if err != nil {
		v.t.Fatalf("guard-monitor %v: %v\n%s", args, err, out)
	}
	return out
}

// sameSchema reports whether the copy of the older monitor's file has the schema of this commit.
func (v *versions) sameSchema() bool {
	v.t.Helper()
	_, err := v.try(v.newMonitor, "tail", "-db", v.copied, "-follow=false")
	if err != nil && !strings.Contains(err.Error(), "schema is older") {
		v.t.Fatal(err)
	}
	return err == nil
}

// try runs a command of guard-monitor. Its error has what the command says about that.
func (v *versions) try(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(v.t.Context(), program, args...)
	cmd.Env = slices.Concat(os.Environ(), v.env, []string{"BELAY_MONITOR_DB=" + v.file})
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &errs)
	}
	return string(out), err
}

func (v *versions) request(path string) (code int, body string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// get returns what the API answers.
func (v *versions) get(path string) string {
	v.t.Helper()
	code, body := v.request("/api/v1/" + path)
	if code != http.StatusOK {
		v.t.Fatalf("GET %s: %d, %s", path, code, body)
	}
	return body
}

// An item is an event or an incident of the API.
type item struct {
	Seq      int64          `json:"seq"`
	Incident string         `json:"incident"`
	Event    notify.Event   `json:"event"`
	ID       string         `json:"id"`
	Service  string         `json:"service"`
	Cause    incident.Cause `json:"cause"`
}

func (v *versions) items(path string) []item {
	v.t.Helper()
	var list struct {
		Items []item `json:"items"`
	}
	if body := v.get(path); json.Unmarshal([]byte(body), &list) != nil {
		v.t.Fatalf("GET %s: %s", path, body)
	}
	return list.Items
}

// all returns all events of the monitor.
func (v *versions) all() (all []item) {
	v.t.Helper()
	for before := ""; ; before = fmt.Sprintf("&before=%d", all[len(all)-1].Seq) {
		page := v.items("events?limit=1000" + before)
		if all = append(all, page...); len(page) < 1000 {
			return all
		}
	}
}

// grouped counts the events that are in an incident.
func (v *versions) grouped() (n int) {
	for _, e := range v.all() {
		if e.Incident != "" {
			n++
		}
	}
	return n
}

// taken counts the events that the monitor has stored since its start and of which instances do
// not know the outcome.
func (v *versions) taken() (n int) {
	const metric = `belay_monitor_events_total{verdict="unknown_commit"} `
	_, body := v.request("/metrics")
	if _, rest, found := strings.Cut(body, metric); found {
		_, _ = fmt.Sscan(rest, &n)
	}
	return n
}

// inIncident waits until an event is in an incident of a cause, and returns the incident's id.
func (v *versions) inIncident(event string, cause incident.Cause) (id string) {
	v.t.Helper()
	testwait.Until(v.t, "the cause of event "+event+" is "+string(cause), func() bool {
		for _, i := range v.items("incidents?event=" + event) {
			if i.Cause == cause {
				id = i.ID
			}
		}
		return id != ""
	})
	return id
}

// sent counts the alerts of a cause that people were sent.
func (v *versions) sent(cause incident.Cause) (n int) {
	v.people.mu.Lock()
	defer v.people.mu.Unlock()
	for _, a := range v.people.alerts {
		if a.Labels["cause"] == string(cause) {
			n++
		}
	}
	return n
}

// wantOneAlert waits until people are sent an incident, which is once: later messages report that it has
// grown, and none that it is over.
func (v *versions) wantOneAlert(i item) {
	v.t.Helper()
	reasons := func() (all []string) {
		v.people.mu.Lock()
		defer v.people.mu.Unlock()
		for _, a := range v.people.alerts {
			if a.Labels["service"] == i.Service && a.Labels["cause"] == string(i.Cause) && (a.Status != "firing" || !grown[a.Reason]) {
				all = append(all, a.Status+" "+a.Reason)
			}
		}
		return all
	}
	testwait.Until(v.t, fmt.Sprintf("people are sent %s of %s", i.Cause, i.Service), func() bool { return len(reasons()) > 0 })
	if all := reasons(); len(all) != 1 {
		v.t.Errorf("people are sent %s of %s %d times: %q", i.Cause, i.Service, len(all), all)
	}
}

// grown are the reasons for another message about an incident that was sent.
var grown = map[string]bool{"more operations": true, "escalated": true}
