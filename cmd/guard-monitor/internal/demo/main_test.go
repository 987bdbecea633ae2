package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/notify"
)

const asDemo = "BELAY_TEST_AS_DEMO"

// TestMain runs the demo itself when a test has started this program as such.
func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

var closing = regexp.MustCompile(`^belay demo: 1000 requests, 50 sold, 0 oversold, 0 duplicates, 1 lock failure intercepted, 1 alert$`)

func TestDemo(t *testing.T) {
	record := filepath.Join(t.TempDir(), "run.db")
	stdout, stderr, status := demo(t, "-record", record)
	if status != 0 || stderr != "" {
		t.Errorf("exit status %d, %q on standard error", status, stderr)
	}
	wantStory(t, stdout, slices.Concat(beginning, failureHere, ending))
	wantPages(t, record)
}

// wantPages checks that the pages about a recorded run have its incident, with its cause, the message
// to people, and its timeline, in both languages.
func wantPages(t *testing.T, record string) {
	t.Helper()
	st, err := store.Open(t.Context(), record)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	site := filepath.Join(t.TempDir(), "site")
	if _, err := web.WriteFiles(t.Context(), web.Config{Store: st, DocsURL: docsURL}, site); err != nil {
		t.Fatal(err)
	}
	for page, parts := range map[string][]string{
		"incidents/*-*-*-*-*/index.html":    {"DEL was called once", "<dt>people ", "docs/alerts/deleted.md"},
		"zh/incidents/*-*-*-*-*/index.html": {"DEL 被调用 1 次", "<dt>people "},
		"timeline/from-*/index.html":        {"DEL was called once", "Incident began: Lock deleted"},
	} {
		files, err := filepath.Glob(filepath.Join(site, page))
		if err != nil || len(files) == 0 {
			t.Errorf("no %s, %v", page, err)
			continue
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %q", page, part)
			}
		}
	}
}

// What a story has, in this order.
var (
	beginning   = []string{"1. The lock turns the crowd away", "sold; the lock turned away"}
	failureHere = []string{
		"2. A lock is lost", "shop-c has the lock sku:7", "somebody removes the lock from Redis: DEL sku:7", "shop-a gets the lock, too", "SQLite refuses",
		"3. The event goes out", "verdict lost, outcome refused", "no row is left in the outbox",
		"4. guard-monitor explains", "cause: deleted, confidence medium", `the lock on key "sku:7" was lost`, "DEL was called once",
		"5. People are told", "alert shop: nothing was changed; probably locks were removed from Redis",
	}
	ending = []string{
		"6. The sale goes on", "50 have bought",
		"7. The books", "nothing is oversold", "nothing is sold twice", "1 event for 1 lock failure",
	}
)

// The README shows how the demo ends.
func TestReadme(t *testing.T) {
	for _, file := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		_, shown, _ := strings.Cut(string(text), "make demo\n...\n")
		shown, _, found := strings.Cut(shown, "```")
		if !found {
			t.Errorf("%s does not show make demo", file)
			continue
		}
		if line := strings.TrimSuffix(shown, "\n"); !closing.MatchString(line) {
			t.Errorf("%s shows %q", file, line)
		}
	}
}

// wantStory checks that a plain story has the given parts, in this order, and
// ends well.
func wantStory(t *testing.T, story string, parts []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(story, "\n"), "\n")
	if !closing.MatchString(lines[len(lines)-1]) {
		t.Errorf("last line is %q", lines[len(lines)-1])
	}
	rest := strings.Join(strings.Fields(story), " ")
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q is not in the story, or not in its place", part)
			continue
		}
		rest = after
	}
	if t.Failed() {
		t.Logf("output:\n%s", story)
	}
}

// Ctrl-C ends the sale, and says so.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	cmd := demoCommand(t)
	var errs testlog.Buffer
	cmd.Stdout, cmd.Stderr = cue{"1. The lock", func() { _ = cmd.Process.Signal(os.Interrupt) }}, &errs
	err := cmd.Run()
	const want = "belay demo: stopped before the sale was over: interrupt signal received\n"
	if status := cmd.ProcessState.ExitCode(); status != 1 || errs.String() != want {
		t.Errorf("%v, exit status %d, %q on standard error", err, status, &errs)
	}
}

func TestDemoCannotStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	stdout, stderr, status := demo(t)
	if status != 1 || stdout != "" || !strings.HasPrefix(stderr, "belay demo: ") {
		t.Errorf("exit status %d, output %q, errors %q", status, stdout, stderr)
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		status int
		say    string
	}{
		{[]string{"-h"}, 0, "-serve"},
		{[]string{"-nonsense"}, 2, "-nonsense"},
		{[]string{"nonsense"}, 2, "nonsense"},
		{[]string{"-serve", "-listen", "0.0.0.0:0"}, 1, "not a loopback address"},
	} {
		_, stderr, status := demo(t, tt.args...)
		if status != tt.status || !strings.Contains(stderr, tt.say) {
			t.Errorf("%q: exit status %d, %q; want %d and %q", tt.args, status, stderr, tt.status, tt.say)
		}
	}
}

// A broker that loses what it has confirmed.
func TestMissingAlert(t *testing.T) {
	e, err := openEmbedded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	e.relay = notify.PublisherFunc(func(context.Context, notify.Event) error { return nil })
	e.monitor.patience = time.Millisecond

	err = e.play(t.Context(), &screen{out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "wait for guard-monitor to have the event") {
		t.Errorf("play: %v", err)
	}
}

func TestAudit(t *testing.T) {
	good := told{sold: 50, busy: 200, repeats: 49, failures: 1, soldOut: 700}
	books50 := books{orders: 50, numbers: 50, events: 1, failures: 1}
	tests := []struct {
		name  string
		told  func(*told)
		books func(*books)
		want  string
	}{
		{name: "as it should be"},
		{name: "one order too many", told: func(t *told) { t.sold++ }, books: func(b *books) { b.orders++; b.numbers++ }, want: "1 oversold"},
		{name: "stock below zero", books: func(b *books) { b.left = -2 }, want: "2 oversold"},
		{name: "an order twice", books: func(b *books) { b.numbers-- }, want: "1 of 50 orders are duplicates"},
		{name: "one item not sold", told: func(t *told) { t.sold-- }, books: func(b *books) { b.orders--; b.numbers--; b.left++ }, want: "49 orders and 1 items left, of 50"},
		{name: "an update lost", books: func(b *books) { b.left++ }, want: "50 orders and 1 items left, of 50"},
		{name: "a shopper misled", told: func(t *told) { t.sold++ }, want: "51 shoppers were told that they have one, of 50 orders"},
		{name: "no failure", told: func(t *told) { t.failures-- }, books: func(b *books) { b.events, b.failures = 0, 0 }, want: "0 lock failures, guard-monitor has 0 in 0 events"},
		{name: "alert not stored", books: func(b *books) { b.events, b.failures = 0, 0 }, want: "1 lock failures, guard-monitor has 0"},
		{name: "alert too many", books: func(b *books) { b.events, b.failures = 2, 2 }, want: "1 lock failures, guard-monitor has 2"},
		{name: "request failed", told: func(t *told) { t.others, t.other = 1, errors.New("disk full") }, want: "1 requests failed, the first with: disk full"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			told, books := good, books50
			if tt.told != nil {
				tt.told(&told)
			}
			if tt.books != nil {
				tt.books(&books)
			}
			var wrong string
			for _, c := range audit(told, books) {
				if !c.ok {
					wrong += c.got + "\n"
				}
			}
			if (wrong == "") != (tt.want == "") || !strings.Contains(wrong, tt.want) {
				t.Errorf("audit: %q, want %q in it", wrong, tt.want)
			}
		})
	}
}

// demo runs the demo in a process of its own.
func demo(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return runDemo(t, demoCommand(t, args...))
}

func runDemo(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func demoCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), asDemo+"=1")
	return cmd
}
