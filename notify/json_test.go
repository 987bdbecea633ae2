package notify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belaygo/belay/notify"
)

func TestExamplesAreWhatIsWritten(t *testing.T) {
	for name, event := range examples() {
		t.Run(name, func(t *testing.T) {
			if string(event.Verdict) != name {
				t.Fatalf("the example %s has verdict %s", name, event.Verdict)
			}
			got, err := json.MarshalIndent(event, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := mustRead(t, path)
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			var back notify.Event
			if err := back.UnmarshalJSON(want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, event) {
				t.Errorf("read back\n%+v\nwant\n%+v", back, event)
			}
		})
	}
}

func TestRoundTripKeepsEverything(t *testing.T) {
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 200_000_000_000).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		event := notify.Event{
			ID:               rapid.StringMatching(`[!-~]{1,255}`).Draw(t, "id"),
			Service:          rapid.StringN(1, -1, -1).Draw(t, "service"),
			Instance:         text.Draw(t, "instance"),
			Verdict:          rapid.SampledFrom([]notify.Verdict{notify.VerdictOverlap, notify.VerdictLost, notify.VerdictUnknownCommit, notify.VerdictDegraded, notify.VerdictUnavailable, notify.VerdictCommitLost, notify.VerdictDeadLetter, notify.VerdictUndecided}).Draw(t, "verdict"),
			Outcome:          rapid.SampledFrom([]notify.Outcome{notify.OutcomeCommitted, notify.OutcomeRefused, notify.OutcomeRolledBack, notify.OutcomeUnknown}).Draw(t, "outcome"),
			Key:              text.Draw(t, "key"),
			Table:            text.Draw(t, "table"),
			Owner:            text.Draw(t, "owner"),
			Token:            rapid.Int64().Draw(t, "token"),
			FirstToken:       rapid.Int64().Draw(t, "first token"),
			TTL:              time.Duration(rapid.Int64Range(0, math.MaxInt64/int64(time.Millisecond)).Draw(t, "ttl")) * time.Millisecond,
			CaughtAt:         instant.Draw(t, "caught_at"),
			Place:            notify.Place{Node: text.Draw(t, "node"), Slot: rapid.Int().Draw(t, "slot"), Entry: text.Draw(t, "entry")},
			HolderAtConflict: rapid.SampledFrom([]notify.Holder{"", notify.HolderSelf, notify.HolderOther, notify.HolderNone, notify.HolderUnknown}).Draw(t, "holder"),
			HolderOwner:      text.Draw(t, "holder_owner"),
			Loss:             rapid.SampledFrom([]notify.Loss{"", notify.LossExpired, notify.LossUnrenewed, notify.LossGone, notify.LossMaxHold}).Draw(t, "loss"),
			Count:            rapid.IntMin(1).Draw(t, "count"),
			TraceID:          text.Draw(t, "trace_id"),
			Library:          text.Draw(t, "library"),
		}
		if rapid.Bool().Draw(t, "has trace") {
			event.Trace = notify.Trace{Parent: aTraceParent, State: rapid.StringMatching(`[ -~]{0,64}`).Draw(t, "state")}
		}
		if index := rapid.SliceOf(text).Draw(t, "index"); len(index) > 0 {
			event.Index = index
		}
		if rapid.Bool().Draw(t, "has versions") {
			event.Versions = &notify.Versions{Expected: rapid.Int64().Draw(t, "expected"), Found: rapid.Int64().Draw(t, "found")}
		}
		if rapid.Bool().Draw(t, "has lost") {
			event.Lost = &notify.LostCommits{
				FirstAt: instant.Draw(t, "first_at"), LastAt: instant.Draw(t, "last_at"),
				Server: text.Draw(t, "server"), Now: text.Draw(t, "now"),
			}
		}
		if rapid.Bool().Draw(t, "has message") {
			event.Message = &notify.DeadLetter{
				ID: text.Draw(t, "message id"), Topic: text.Draw(t, "topic"), StoredAt: instant.Draw(t, "stored_at"),
				Attempts: rapid.Int().Draw(t, "attempts"), Undecided: rapid.Bool().Draw(t, "undecided"),
			}
		}
		if rapid.Bool().Draw(t, "has call") {
			event.Call = &notify.UndecidedCall{
				ID: text.Draw(t, "call id"), Operation: text.Draw(t, "operation"), Since: instant.Draw(t, "since"), Until: instant.Draw(t, "until"),
				Tries: rapid.Int().Draw(t, "tries"),
			}
		}
		if rapid.Bool().Draw(t, "has acquired_at") {
			event.AcquiredAt = instant.Draw(t, "acquired_at")
			event.Deadline = instant.Draw(t, "deadline")
		}

		b, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		var back notify.Event
		if err := back.UnmarshalJSON(b); err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		if !reflect.DeepEqual(back, event) {
			t.Fatalf("got\n%+v\nwant\n%+v", back, event)
		}
	})
}

func TestTimesAreWrittenInUTC(t *testing.T) {
	there := time.FixedZone("there", 8*3600)
	event := examples()["undecided"]
	event.CaughtAt = event.CaughtAt.In(there)
	event.Call.Since, event.Call.Until = event.Call.Since.In(there), event.Call.Until.In(there)
	b, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"time":"2026-11-21T09:30:07.25Z"`, `"since":"2026-11-20T12:30:07.25Z"`, `"until":"2026-11-21T08:30:07.25Z"`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
	if event.Call.Since.Location() != there {
		t.Error("the event itself is changed")
	}
}

func TestBrokenTextIsReplacedNotLost(t *testing.T) {
	event := examples()["lost"]
	event.Key, event.Service = "k\xff\x00", "s\xff/x"
	b, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	var back notify.Event
	if err := back.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	if want := "k\ufffd\x00"; back.Key != want {
		t.Errorf("key = %q, want %q", back.Key, want)
	}
}

// document returns a valid event as a tree, to be spoilt.
func document(t testing.TB) (envelope, data map[string]any) {
	t.Helper()
	b, err := json.Marshal(examples()["overlap"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &envelope); err != nil {
		t.Fatal(err)
	}
	return envelope, envelope["data"].(map[string]any)
}

func TestUnknownMembersAreIgnored(t *testing.T) {
	envelope, data := document(t)
	envelope["later"], data["later"] = "x", map[string]any{"a": []int{1}}
	b, _ := json.Marshal(envelope)
	var event notify.Event
	if err := event.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	if want := examples()["overlap"]; !reflect.DeepEqual(event, want) {
		t.Errorf("got %+v, want %+v", event, want)
	}
}

// refusals spoil a valid event.
var refusals = map[string]func(envelope, data map[string]any){
	"another specversion": func(e, _ map[string]any) { e["specversion"] = "0.3" },
	"another type":        func(e, _ map[string]any) { e["type"] = "io.github.belaygo.interception.v2" },
	"no type":             func(e, _ map[string]any) { delete(e, "type") },
	"no source":           func(e, _ map[string]any) { delete(e, "source") },
	"no data":             func(e, _ map[string]any) { delete(e, "data") },
	"data is a list":      func(e, _ map[string]any) { e["data"] = []int{1} },
	"data is null":        func(e, _ map[string]any) { e["data"] = nil },
	"no id":               func(e, _ map[string]any) { delete(e, "id") },
	"id is a number":      func(e, _ map[string]any) { e["id"] = 7 },
	"time is no time":     func(e, _ map[string]any) { e["time"] = "yesterday" },
	"verdict":             func(_, d map[string]any) { d["verdict"] = "unheard-of" },
	"outcome":             func(_, d map[string]any) { d["outcome"] = "ok" },
	"holder":              func(_, d map[string]any) { d["holder_at_conflict"] = "SELF" },
	"no service":          func(_, d map[string]any) { delete(d, "service") },
	"key is an object":    func(_, d map[string]any) { d["key"] = map[string]any{} },
	"index is a text":     func(_, d map[string]any) { d["index"] = "no" },
	"token is a number":   func(_, d map[string]any) { d["token"] = 7 },
	"token is no number":  func(_, d map[string]any) { d["token"] = "7x" },
	"token is huge":       func(_, d map[string]any) { d["token"] = "9223372036854775808" },
	"token has a plus":    func(_, d map[string]any) { d["token"] = "+7" },
	"ttl is huge":         func(_, d map[string]any) { d["ttl_ms"] = math.MaxInt64 },
	"ttl is beyond 64":    func(_, d map[string]any) { d["ttl_ms"] = json.Number(strings.Repeat("9", 4096)) },
	"ttl is negative":     func(_, d map[string]any) { d["ttl_ms"] = -1 },
	"ttl is a fraction":   func(_, d map[string]any) { d["ttl_ms"] = 1.5 },
	"slot is huge":        func(_, d map[string]any) { d["place"] = map[string]any{"slot": json.Number("1e400")} },
	"count is zero":       func(_, d map[string]any) { d["count"] = 0 },
	"no caught_at":        func(_, d map[string]any) { delete(d, "caught_at") },
	"caught_at too far":   func(_, d map[string]any) { d["caught_at"] = "9999-12-31T23:59:59-10:00" },
}

func TestUnmarshalRefuses(t *testing.T) {
	for name, spoil := range refusals {
		t.Run(name, func(t *testing.T) {
			envelope, data := document(t)
			spoil(envelope, data)
			b, err := json.Marshal(envelope)
			if err != nil {
				t.Fatal(err)
			}
			refused(t, b)
		})
	}
	whole, _ := json.Marshal(examples()["lost"])
	for name, b := range map[string][]byte{
		"nothing":      nil,
		"null":         []byte("null"),
		"a text":       []byte(`"event"`),
		"cut short":    whole[:len(whole)-1],
		"two of them":  append(bytes.Clone(whole), whole...),
		"broken UTF-8": bytes.Replace(whole, []byte("order:"), []byte("order\xff"), 1),
		"deep nesting": bytes.Repeat([]byte("["), 1<<20),
	} {
		t.Run(name, func(t *testing.T) { refused(t, b) })
	}
}

func refused(t *testing.T, b []byte) {
	t.Helper()
	before := examples()["degraded"]
	event := before
	err := event.UnmarshalJSON(b)
	if !errors.Is(err, notify.ErrInvalidEvent) {
		t.Fatalf("err = %v, want ErrInvalidEvent", err)
	}
	if len(err.Error()) > 300 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	if !reflect.DeepEqual(event, before) {
		t.Errorf("a refused document changed the event: %+v", event)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, event := range examples() {
		b, err := json.Marshal(event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"specversion":"1.0","data":{"token":"-0","ttl_ms":1e3,"place":null,"index":[null]}}`))
	f.Add([]byte(`{"id":"\ud800","time":"2026-13-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var event notify.Event
		if err := event.UnmarshalJSON(b); err != nil {
			if !errors.Is(err, notify.ErrInvalidEvent) {
				t.Fatalf("err = %v, want ErrInvalidEvent", err)
			}
			return
		}
		again, err := event.MarshalJSON()
		if err != nil {
			t.Fatalf("read, but not written: %v", err)
		}
		var back notify.Event
		if err := back.UnmarshalJSON(again); err != nil {
			t.Fatalf("written, but not read: %v", err)
		}
		if len(event.Index) == 0 {
			event.Index = nil
		}
		if !reflect.DeepEqual(back, event) {
			t.Fatalf("got\n%+v\nwant\n%+v", back, event)
		}
	})
}
