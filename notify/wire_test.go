package notify_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/notify"
)

// Every byte of these has been written by an earlier version, line by line. A
// change of one is a change of the wire format.
func TestWireFormatStays(t *testing.T) {
	const path = "testdata/wire.golden"
	var got bytes.Buffer
	for _, v := range wireExamples() {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(b, '\n'))
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Split(string(mustRead(t, path)), "\n")
	lines := strings.Split(got.String(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(lines), len(want))
	}
	for i, line := range lines {
		if line != want[i] {
			t.Errorf("line %d: got\n%s\nwant\n%s", i+1, line, want[i])
		}
	}
}

// wireExamples has every member of an event, alone and with the others, and the
// values that are easily written another way.
func wireExamples() []any {
	least := notify.Event{
		ID: "1", Service: "s", Verdict: notify.VerdictLost, Outcome: notify.OutcomeUnknown,
		CaughtAt: time.Date(2026, 11, 21, 9, 30, 7, 0, time.UTC), Count: 1,
	}
	with := func(change func(*notify.Event)) notify.Event {
		ev := least
		change(&ev)
		return ev
	}
	berlin := time.FixedZone("CET", 3600)
	whole := examples()["overlap"]
	whole.FirstToken, whole.Loss, whole.Place.Entry = 41, notify.LossMaxHold, "shop:order:2026-0042"
	nothing := examples()["degraded"]
	nothing.Count = 0
	return []any{
		least, whole, nothing,
		with(func(e *notify.Event) { e.Instance = "a/b c" }),
		with(func(e *notify.Event) { e.Key = "k<&>\u2028\xff\x00中🧗\"" }),
		with(func(e *notify.Event) { e.Table = "t" }),
		with(func(e *notify.Event) { e.Index = []string{} }),
		with(func(e *notify.Event) { e.Index = []string{"a", ""} }),
		with(func(e *notify.Event) { e.Versions = new(notify.Versions) }),
		with(func(e *notify.Event) { e.Owner = "o" }),
		with(func(e *notify.Event) { e.Token = -1 << 63 }),
		with(func(e *notify.Event) { e.FirstToken = 1<<63 - 1 }),
		with(func(e *notify.Event) { e.AcquiredAt = time.Unix(0, 1).In(berlin) }),
		with(func(e *notify.Event) { e.TTL = time.Millisecond - 1 }),
		with(func(e *notify.Event) { e.TTL = 2*time.Millisecond - 1 }),
		with(func(e *notify.Event) { e.TTL = 1<<63 - 1 }),
		with(func(e *notify.Event) { e.Deadline = time.Unix(1, 0).In(berlin) }),
		with(func(e *notify.Event) { e.Loss = notify.LossUnrenewed }),
		with(func(e *notify.Event) { e.CaughtAt = time.Unix(0, 0).In(berlin) }),
		with(func(e *notify.Event) { e.Place.Slot = -1 }),
		with(func(e *notify.Event) { e.Place.Node = "n" }),
		with(func(e *notify.Event) { e.Place.Entry = "e" }),
		with(func(e *notify.Event) { e.HolderAtConflict = notify.HolderNone }),
		with(func(e *notify.Event) { e.HolderOwner = "h" }),
		with(func(e *notify.Event) { e.Count = 1<<63 - 1 }),
		with(func(e *notify.Event) { e.TraceID = "id" }),
		with(func(e *notify.Event) { e.Library = "v1" }),
		with(func(e *notify.Event) { e.Trace = notify.Trace{Parent: aTraceParent, State: "a=1"} }),
		with(func(e *notify.Event) { e.Trace = notify.Trace{Parent: "none", State: "a=1"} }),
		heartbeat.Heartbeat{
			ID: "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", Service: "orders", Instance: "orders-7d9f/1",
			At: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC), Interval: time.Minute, Backlog: 3,
		},
		heartbeat.Heartbeat{ID: "1", Service: "s<", At: time.Unix(0, 0).In(berlin), Interval: 2*time.Millisecond - 1},
		heartbeat.Heartbeat{
			ID: "1", Service: "s", At: time.Unix(0, 0), Interval: time.Minute,
			Switch: heartbeat.Switch{Epoch: 1<<63 - 1, From: "a<", To: "b", Settled: true},
		},
		examples()["commit_lost"],
		with(func(e *notify.Event) { e.Lost = new(notify.LostCommits) }),
		examples()["dead_letter"],
		heartbeat.Heartbeat{
			ID: "1", Service: "s", At: time.Unix(0, 0), Interval: time.Minute,
			Messages: heartbeat.Messages{Table: "shop.belay_message", Waiting: 10000, Oldest: 90 * time.Second, Parked: 3, Dead: 2, Undecided: 1, OldestDead: time.Hour},
		},
		examples()["undecided"],
		heartbeat.Heartbeat{
			ID: "1", Service: "s", At: time.Unix(0, 0), Interval: time.Minute,
			Calls: heartbeat.Calls{Table: "shop.belay_pending", Pending: 10000, Oldest: 40 * time.Second, Undecided: 1, OldestUndecided: 3 * time.Hour},
		},
	}
}
