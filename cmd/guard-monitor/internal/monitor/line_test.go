package monitor_test

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

func TestSeverity(t *testing.T) {
	tests := []struct {
		verdict notify.Verdict
		outcome notify.Outcome
		want    string
	}{
		{notify.VerdictOverlap, notify.OutcomeRefused, "WARNING"},
		{notify.VerdictLost, notify.OutcomeRolledBack, "WARNING"},
		{notify.VerdictLost, notify.OutcomeCommitted, "WARNING"},
		{notify.VerdictLost, notify.OutcomeUnknown, "CRITICAL"},
		{notify.VerdictUnknownCommit, notify.OutcomeUnknown, "CRITICAL"},
		{notify.VerdictDegraded, notify.OutcomeUnknown, "WARNING"},
		{notify.VerdictUnavailable, notify.OutcomeRolledBack, "WARNING"},
	}
	for _, tt := range tests {
		ev := event("1")
		ev.Verdict, ev.Outcome = tt.verdict, tt.outcome
		if got, want := line(t, ev), " "+tt.want+" "+string(tt.verdict)+" "; !strings.Contains(got, want) {
			t.Errorf("line %q, want %q in it", got, want)
		}
	}
}

func TestHostileLine(t *testing.T) {
	for _, hostile := range []string{
		"a\nALERT forged", "a\r\n", "\x1b]0;title\x07\x1b[2J", "\u009b31m", "\u202egnp.exe", "\u2028", "\x00", "a\xffb",
		strings.Repeat("long ", 10_000),
	} {
		ev := event("1")
		ev.Key, ev.Service, ev.Instance, ev.Table, ev.Owner, ev.Place.Node = hostile, hostile, hostile, hostile, hostile, hostile
		checkLine(t, line(t, ev))
	}
}

func FuzzLine(f *testing.F) {
	f.Add("orders", "orders-1", "order:1", "orders")
	f.Add("a b", "", "\n\x1b[31m\u202e\xff", "\u2028")
	f.Fuzz(func(t *testing.T, service, instance, key, table string) {
		ev := event("1")
		ev.Service, ev.Instance, ev.Key, ev.Table, ev.Owner = service, instance, key, table, key
		if ev.Validate() != nil {
			t.Skip("not a valid event")
		}
		checkLine(t, line(t, ev))
	})
}

func checkLine(t *testing.T, line string) {
	t.Helper()
	const prefix = "2026-05-04T03:02:01.500Z WARNING overlap "
	body, ended := strings.CutSuffix(line, "\n")
	switch i := strings.IndexFunc(body, func(r rune) bool { return !strconv.IsPrint(r) }); {
	case !ended, !strings.HasPrefix(line, prefix):
		t.Errorf("line %q: want %q first and a line end last", line, prefix)
	case i >= 0:
		t.Errorf("line %q: unprintable character at %d", line, i)
	case !utf8.ValidString(body):
		t.Errorf("line %q is not UTF-8", line)
	case len(line) > 32<<10:
		t.Errorf("line has %d bytes", len(line))
	}
}

// line returns what a monitor writes for ev.
func line(t *testing.T, ev notify.Event) string {
	t.Helper()
	var out bytes.Buffer
	ingest(t, newMonitor(t, acceptAll{}, &out), ev)
	return out.String()
}

// acceptAll is a store that finds every event new.
type acceptAll struct{}

func (acceptAll) Add(context.Context, notify.Event, []byte, string) (bool, error) { return true, nil }

func (acceptAll) AddHeartbeat(context.Context, incident.Heartbeat) error { return nil }

func (acceptAll) Recent(context.Context, int) ([]store.Received, error) { return nil, nil }
