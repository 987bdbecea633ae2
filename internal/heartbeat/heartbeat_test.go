package heartbeat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/notify"
)

const path = "../../notify/testdata/heartbeat.json"

var update = flag.Bool("update", false, "write the example in notify/testdata anew")

func aHeartbeat() heartbeat.Heartbeat {
	return heartbeat.Heartbeat{
		ID:       "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b",
		Service:  "orders",
		Instance: "orders-7d9f/1",
		At:       time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Interval: time.Minute,
		Backlog:  3,
		Switch:   heartbeat.Switch{Epoch: 4, From: "redis", To: "sql", By: "alice", Left: 40 * time.Second},
		Messages: heartbeat.Messages{
			Table: "shop.belay_message", Waiting: 412, Oldest: 90 * time.Second, Parked: 7, Dead: 2, Undecided: 1, OldestDead: 26 * time.Minute,
		},
		Calls: heartbeat.Calls{Table: "shop.belay_pending", Pending: 9, Oldest: 40 * time.Second, Undecided: 1, OldestUndecided: 3 * time.Hour},
	}
}

func TestHeartbeatIsWhatIsWritten(t *testing.T) {
	got, err := json.MarshalIndent(aHeartbeat(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := read(t)
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var back heartbeat.Heartbeat
	if err := back.UnmarshalJSON(want); err != nil || back != aHeartbeat() {
		t.Errorf("read back %+v, %v", back, err)
	}
	var event notify.Event
	if err := event.UnmarshalJSON(want); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("a heartbeat was read as an event: %v", err)
	}
}

func TestHeartbeatIsChecked(t *testing.T) {
	for name, spoil := range map[string]func(*heartbeat.Heartbeat){
		"id":       func(h *heartbeat.Heartbeat) { h.ID = "" },
		"service":  func(h *heartbeat.Heartbeat) { h.Service = "" },
		"time":     func(h *heartbeat.Heartbeat) { h.At = time.Time{} },
		"interval": func(h *heartbeat.Heartbeat) { h.Interval = time.Microsecond },
		"backlog":  func(h *heartbeat.Heartbeat) { h.Backlog = -1 },
		"epoch":    func(h *heartbeat.Heartbeat) { h.Switch.Epoch = 0 },
		"from":     func(h *heartbeat.Heartbeat) { h.Switch.From = "" },
		"to":       func(h *heartbeat.Heartbeat) { h.Switch.To = "" },
		"left_ms":  func(h *heartbeat.Heartbeat) { h.Switch.Left = -1 },
		"table":    func(h *heartbeat.Heartbeat) { h.Messages.Table = "" },
		"messages": func(h *heartbeat.Heartbeat) { h.Messages.Undecided = -1 },
		"calls.":   func(h *heartbeat.Heartbeat) { h.Calls.Table = "" },
		"calls":    func(h *heartbeat.Heartbeat) { h.Calls.Undecided = -1 },
	} {
		h := aHeartbeat()
		spoil(&h)
		if err := h.Validate(); !errors.Is(err, notify.ErrInvalidEvent) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: err = %v, want ErrInvalidEvent that names it", name, err)
		}
		if _, err := h.MarshalJSON(); !errors.Is(err, notify.ErrInvalidEvent) {
			t.Errorf("%s: written, err = %v", name, err)
		}
	}
	good := string(read(t))
	for old, spoilt := range map[string]string{
		`"interval_ms": 60000`: `"interval_ms": 9223372036855`,
		`"backlog": 3`:         `"backlog": -3`,
		`"time": "2026`:        `"time": "20266`,
		`heartbeat.v1",`:       `heartbeat.v2",`,
		`"epoch": 4`:           `"epoch": -4`,
		`"to": "sql"`:          `"later": "sql"`,
		`"settled": false`:     `"settled": "no"`,
		`"left_ms": 40000`:     `"left_ms": 9223372036855`,
		`"oldest_ms": 90000`:   `"oldest_ms": 9223372036855`,
		`"dead": 2`:            `"dead": -2`,
		`"pending": 9`:         `"pending": -9`,
		`"oldest_ms": 40000`:   `"oldest_ms": 9223372036855`,
	} {
		h := aHeartbeat()
		b := strings.Replace(good, old, spoilt, 1)
		if err := h.UnmarshalJSON([]byte(b)); !errors.Is(err, notify.ErrInvalidEvent) {
			t.Errorf("%s: err = %v, want ErrInvalidEvent", spoilt, err)
		}
		if b == good || h != aHeartbeat() {
			t.Errorf("%s: not spoilt, or a refused document changed the heartbeat", spoilt)
		}
	}
}

// TestHeartbeatWithLess: a service with one engine and without messages, or an older version, sends
// neither.
func TestHeartbeatWithLess(t *testing.T) {
	h := aHeartbeat()
	h.Switch, h.Messages, h.Calls = heartbeat.Switch{}, heartbeat.Messages{}, heartbeat.Calls{}
	b, err := json.Marshal(h)
	if err != nil || bytes.Contains(b, []byte("switch")) || bytes.Contains(b, []byte("messages")) || bytes.Contains(b, []byte("calls")) {
		t.Errorf("written as %s, %v", b, err)
	}
	var back heartbeat.Heartbeat
	if err := back.UnmarshalJSON(b); err != nil || back != h {
		t.Errorf("read back %+v, %v", back, err)
	}
}

func read(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
