package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

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

func TestDemo(t *testing.T) {
	stdout, stderr, status := demo(t)
	if status != 0 || stderr != "" {
		t.Errorf("exit status %d, %q on standard error", status, stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	closing := regexp.MustCompile(`^belay demo: 1000 requests, 50 sold, 0 oversold, 0 duplicates, ([1-9]\d*) lock failures intercepted, (\d+) alerts$`)
	found := closing.FindStringSubmatch(lines[len(lines)-1])
	if found == nil || found[1] != found[2] {
		t.Errorf("last line is %q", lines[len(lines)-1])
	}
	for _, want := range []string{
		"insert + update",
		"WARNING lost shop/",
		`The lock on key "sku:7" was lost`,
		"it was rolled back and changed nothing",
		"nobody held the key",
	} {
		if !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("output lacks %q", want)
		}
	}
	if t.Failed() {
		t.Logf("output:\n%s", stdout)
	}
}

func TestDemoCannotStart(t *testing.T) {
	stdout, stderr, status := demo(t, "TMPDIR="+t.TempDir()+"/missing")
	if status != 1 || stdout != "" || !strings.HasPrefix(stderr, "belay demo: ") {
		t.Errorf("exit status %d, output %q, errors %q", status, stdout, stderr)
	}
}

// A broker that loses what it has confirmed.
func TestMissingAlert(t *testing.T) {
	s, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.broker = notify.PublisherFunc(func(context.Context, notify.Event) error { return nil })

	var out bytes.Buffer
	if err := s.sell(t.Context(), &out); err == nil || err.Error() != "1 lock failures, alerts for 0" {
		t.Errorf("sell: %v", err)
	}
	if want := "0 duplicates, 1 lock failures intercepted, 0 alerts\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("want %q at the end of the output:\n%s", want, out.String())
	}
}

func TestAudit(t *testing.T) {
	good := told{sold: 50, busy: 200, repeats: 49, failures: 1, soldOut: 700}
	books50 := books{orders: 50, numbers: 50, events: 1, failures: 1, alertLines: 1}
	tests := []struct {
		name  string
		told  func(*told)
		books func(*books)
		want  string
	}{
		{name: "as it should be"},
		{name: "one order too many", told: func(t *told) { t.sold++ }, books: func(b *books) { b.orders++; b.numbers++ }, want: "1 items oversold"},
		{name: "stock below zero", books: func(b *books) { b.left = -2 }, want: "2 items oversold"},
		{name: "an order twice", books: func(b *books) { b.numbers-- }, want: "1 orders are duplicates"},
		{name: "one item not sold", told: func(t *told) { t.sold-- }, books: func(b *books) { b.orders--; b.numbers--; b.left++ }, want: "49 orders for 50 items"},
		{name: "an update lost", books: func(b *books) { b.left++ }, want: "50 orders and 1 items left, of 50"},
		{name: "a shopper misled", told: func(t *told) { t.sold++ }, want: "51 shoppers were told that they have one, 50 orders"},
		{name: "no failure", told: func(t *told) { t.failures-- }, books: func(b *books) { b.events, b.failures, b.alertLines = 0, 0, 0 }, want: "no lock failure was intercepted"},
		{name: "alert not stored", books: func(b *books) { b.events, b.failures, b.alertLines = 0, 0, 0 }, want: "1 lock failures, alerts for 0"},
		{name: "alert too many", books: func(b *books) { b.events, b.failures, b.alertLines = 2, 2, 2 }, want: "1 lock failures, alerts for 2"},
		{name: "alert not written", books: func(b *books) { b.alertLines = 0 }, want: "1 events, 0 alerts written"},
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
			err := audit(50, told, books)
			if tt.want == "" {
				if err != nil {
					t.Errorf("audit: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("audit: %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestFold(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"", "\n"},
		{"one\n", " one\n"},
		{"one two three\n", " one two\n three\n"},
		{"incomprehensible word", " incomprehensible\n word\n"},
	} {
		if got := fold(tt.line, 8, " "); got != tt.want {
			t.Errorf("fold(%q) = %q, want %q", tt.line, got, tt.want)
		}
	}
}

// demo runs the demo in a process of its own.
func demo(t *testing.T, env ...string) (stdout, stderr string, status int) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(append(os.Environ(), asDemo+"=1"), env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
