package main_test

import (
	"database/sql"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

const (
	password = "hunter2"
	// Nobody answers here: port 1 is reserved and not served.
	deadURL = "amqp://user:" + password + "@127.0.0.1:1/"
)

func TestWrongUsage(t *testing.T) {
	tests := []struct {
		name  string
		env   []string
		args  []string
		names string // what the error must name
	}{
		{"no broker", nil, nil, "-amqp-url"},
		{"neither broker nor ingest", nil, nil, "ingest"},
		{"empty broker in the environment", []string{"BELAY_AMQP_URL="}, nil, "BELAY_AMQP_URL"},
		{"broker of another kind", nil, []string{"-amqp-url", "http://user:" + password + "@host/"}, "-amqp-url"},
		{"broker that is no URL", nil, []string{"-amqp-url", "amqp://user:" + password + "@host:port/%zz"}, "-amqp-url"},
		{"broker from the environment", []string{"BELAY_AMQP_URL=" + password}, nil, "BELAY_AMQP_URL"},
		{"all addresses", nil, []string{"-amqp-url", deadURL, "-listen", "0.0.0.0:9440"}, "-listen"},
		{"all addresses by default", nil, []string{"-amqp-url", deadURL, "-listen", ":9440"}, "-listen"},
		{"all IPv6 addresses", nil, []string{"-amqp-url", deadURL, "-listen", "[::]:9440"}, "-listen"},
		{"public address", nil, []string{"-amqp-url", deadURL, "-listen", "192.0.2.1:9440"}, "-listen"},
		{"host name", nil, []string{"-amqp-url", deadURL, "-listen", "example.com:9440"}, "-listen"},
		{"no port", nil, []string{"-amqp-url", deadURL, "-listen", "127.0.0.1"}, "-listen"},
		{"port out of range", nil, []string{"-amqp-url", deadURL, "-listen", "127.0.0.1:65536"}, "-listen"},
		{"setting of the file as a flag", nil, []string{"-amqp-url", deadURL, "-log-level", "debug"}, "-log-level"},
		{"empty file", nil, []string{"-amqp-url", deadURL, "-db", ""}, "-db"},
		{"unknown flag", nil, []string{"-amqp-uri=" + deadURL}, "-amqp-uri"},
		{"broker as a flag", nil, []string{"-" + deadURL}, "flag"},
		{"value for a switch", nil, []string{"-version=" + deadURL}, "flag"},
		{"flag without value", nil, []string{"-listen"}, "-listen"},
		{"argument", nil, []string{"-amqp-url", deadURL, deadURL}, "argument"},
		{"unknown command", nil, []string{deadURL}, "commands are serve"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, tt.env, tt.args...)
			if code := p.wait(); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			checkError(t, p, tt.names)
		})
	}
}

func TestCannotStart(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	newer := newerStore(t)
	tests := []struct {
		name, names string
		args        []string
	}{
		{"missing folder", "db", []string{"-db", "missing/m.db"}},
		{"newer schema", "schema is newer", []string{"-db", newer}},
		{"port in use", "address already in use", []string{"-listen", ln.Addr().String()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, nil, append([]string{"-amqp-url", deadURL}, tt.args...)...)
			if code := p.wait(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			checkError(t, p, tt.names)
		})
	}
}

// checkError expects one line on standard error that names the cause and hides
// the password.
func checkError(t *testing.T, p *process, names string) {
	t.Helper()
	got := p.stderr.String()
	if !strings.HasPrefix(got, "guard-monitor: ") || strings.Count(got, "\n") != 1 || !strings.Contains(got, names) {
		t.Errorf("standard error %q, want one line that names %q", got, names)
	}
	if strings.Contains(got, password) {
		t.Errorf("standard error %q shows the password", got)
	}
	if got := p.stdout.String(); got != "" {
		t.Errorf("standard output %q, want none", got)
	}
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"-h", "-help", "--help"} {
		p := start(t, []string{"BELAY_AMQP_URL=" + deadURL}, arg)
		if code := p.wait(); code != 0 {
			t.Errorf("%s: exit code %d, want 0", arg, code)
		}
		got := p.stdout.String()
		for _, want := range []string{
			"-amqp-url URL", "BELAY_AMQP_URL", "-db FILE", "BELAY_MONITOR_DB", "default guard-monitor.db",
			"-listen ADDR", "default 127.0.0.1:9440", "-config FILE", "BELAY_MONITOR_CONFIG", "-redis-nodes HOST:PORT,...", "-version", "Exit codes:",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in %q", arg, want, got)
			}
		}
		if strings.Contains(got, password) {
			t.Errorf("%s shows the password", arg)
		}
	}
}

func TestVersion(t *testing.T) {
	p := start(t, nil, "-version")
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if got := p.stdout.String(); !strings.HasPrefix(got, "guard-monitor ") || !strings.Contains(got, " go1.") {
		t.Errorf("version %q", got)
	}
}

// newerStore returns the file of a store that a later version wrote.
func newerStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "newer.db")
	st, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `INSERT INTO schema_version VALUES (9999, 0)`); err != nil {
		t.Fatal(err)
	}
	return path
}
