package receiver_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/internal/teststack"
)

// The real Alertmanager takes alerts, keeps them, routes them by their labels, and takes
// their end.
func TestRealAlertmanager(t *testing.T) {
	urgent := newServer(t, http.StatusOK, "")
	address := startAlertmanager(t, urgent.URL)
	r, err := receiver.New(receiver.Config{
		Name: "am", Kind: receiver.Alertmanager, URL: address,
		Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := notification()
	for i := range n.Alerts {
		n.Alerts[i].StartsAt = time.Now().Add(-time.Minute)
		n.Alerts[i].EndsAt = time.Time{}
	}
	n.Alerts[0].Labels["severity"], n.Alerts[1].Labels["severity"] = "critical", "warning"
	if err := r.Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	waitAlerts(t, address, 2)
	wait(t, func() bool { return strings.Contains(urgent.bodies(), `"shard":"0-5460"`) })
	if strings.Contains(urgent.bodies(), `"shard":"5461-10922"`) {
		t.Errorf("the receiver of critical alerts got %s", urgent.bodies())
	}
	for _, a := range alerts(t, address) {
		if a.Labels["service"] != "orders" || a.Status.State == "" || a.Annotations[receiver.AnnotationSummary] == "" {
			t.Errorf("alert %+v", a)
		}
		if left := time.Until(a.EndsAt); left < 2*receiver.AlertmanagerRepeat || left > 5*receiver.AlertmanagerRepeat {
			t.Errorf("the alert ends in %v if nobody repeats it", left)
		}
		if a.Labels["shard"] == "0-5460" && a.Fingerprint != n.Alerts[0].Fingerprint() {
			t.Errorf("fingerprint %s, ours is %s", a.Fingerprint, n.Alerts[0].Fingerprint())
		}
	}
	n.Alerts[1].EndsAt = time.Now()
	if err := r.Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	waitAlerts(t, address, 1)

	n.Alerts[0].Labels = map[string]string{"": "not a label"}
	if err := r.Send(t.Context(), n); err == nil {
		t.Error("an alert with a bad label was taken")
	}
}

type storedAlert struct {
	Labels, Annotations map[string]string
	EndsAt              time.Time
	Fingerprint         string
	Status              struct{ State string }
}

func alerts(t *testing.T, address string) (all []storedAlert) {
	t.Helper()
	if err := get(t.Context(), address+"/api/v2/alerts?active=true", &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func waitAlerts(t *testing.T, address string, want int) {
	t.Helper()
	wait(t, func() bool { return len(alerts(t, address)) == want })
}

func wait(t *testing.T, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(30 * time.Second); !cond(); {
		select {
		case <-late:
			t.Fatal("not in 30 s")
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(into)
}

// startAlertmanager starts Debian's on a free port. It sends critical alerts to a webhook.
func startAlertmanager(t *testing.T, urgent string) string {
	t.Helper()
	path := teststack.Program(t, "prometheus-alertmanager", "prometheus-alertmanager")
	dir := t.TempDir()
	config := filepath.Join(dir, "am.yaml")
	text := `
route:
  receiver: nobody
  group_wait: 0s
  routes: [{receiver: urgent, matchers: ['severity = "critical"', 'service = "orders"']}]
receivers: [{name: nobody}, {name: urgent, webhook_configs: [{url: "` + urgent + `"}]}]
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config.file="+config, "--storage.path="+dir, "--cluster.listen-address=", "--web.listen-address="+addr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := "http://" + addr
	var status any
	wait(t, func() bool { return get(t.Context(), address+"/api/v2/status", &status) == nil })
	return address
}
