package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/dbguard"
)

// parcel is the row of call n of depot 1, and arrived its message's effect.
func parcel(n int64) Parcel { return Parcel{No: parcelNo(n), Depot: 1, N: n} }

func arrived(n int64) Arrival {
	return Arrival{ID: uint(n), Lane: keyOf(depots, 1), No: parcelNo(n), N: n, By: "a"}
}

func parcelNo(n int64) string { return fmt.Sprintf("a.%d", n) }

// sendsAs writes the lines of a call that sends, and ends with a result.
func sendsAs(n int64, result string) []line {
	do, key := parcelNo(n), keyOf(depots, 1)
	lines := []line{
		{T: 10 * n, At: called, Do: do, Key: key, Kind: "send"}, {T: 10*n + 1, At: begun, Do: do},
		{T: 10*n + 2, At: loaded, Do: do, Version: n}, {T: 10*n + 3, At: wrote, Do: do}, {T: 10*n + 4, At: ended, Do: do},
	}
	if result == "" {
		return lines[:4]
	}
	return append(lines, line{T: 10*n + 5, At: returned, Do: do, Key: key, Result: result})
}

// A messageTale is a run of messages of depot 1, and what the judge says of it.
type messageTale struct {
	name  string
	lines []line
	rows  rows
	stay  []left
	says  string // or nothing
	want  sentVerdict
}

var messageTales = []messageTale{
	{
		name: "each once, in order", lines: slices.Concat(sendsAs(1, done), sendsAs(2, done)),
		rows: rows{Parcels: []Parcel{parcel(1), parcel(2)}, Arrivals: []Arrival{arrived(1), arrived(2)}},
		want: sentVerdict{sent: 2, effects: 2},
	},
	{
		name: "a commit of unknown outcome, and its worker was killed", lines: slices.Concat(sendsAs(1, unknown), sendsAs(2, "")),
		rows: rows{Parcels: []Parcel{parcel(1), parcel(2)}, Arrivals: []Arrival{arrived(1), arrived(2)}},
		want: sentVerdict{sent: 2, effects: 2},
	},
	{
		name: "rolled back, and nothing has come", lines: slices.Concat(sendsAs(1, poor), sendsAs(2, duplicate)),
		want: sentVerdict{},
	},
	{
		name: "twice", lines: sendsAs(1, done),
		rows: rows{Parcels: []Parcel{parcel(1)}, Arrivals: []Arrival{arrived(1), arrived(1)}},
		says: "has taken effect 2 times", want: sentVerdict{sent: 1, effects: 1, twice: 1},
	},
	{
		name: "lost", lines: sendsAs(1, done), rows: rows{Parcels: []Parcel{parcel(1)}},
		says: "that was committed has no effect", want: sentVerdict{sent: 1, lost: 1},
	},
	{
		name: "stuck", lines: sendsAs(1, done), rows: rows{Parcels: []Parcel{parcel(1)}},
		stay: []left{{Topic: byHand, Key: keyOf(depots, 1), Body: `{"no":"a.1","n":1}`, Reason: "rejected"}},
		says: "has not left by the end", want: sentVerdict{sent: 1, stay: 1},
	},
	{
		name: "of an operation that was refused", lines: sendsAs(1, poor), rows: rows{Arrivals: []Arrival{arrived(1)}},
		says: "whose operation was rolled back: poor", want: sentVerdict{astray: 1},
	},
	{
		name: "of an operation that was not committed", lines: sendsAs(1, ""), rows: rows{Arrivals: []Arrival{arrived(1)}},
		says: "whose operation was not committed", want: sentVerdict{astray: 1},
	},
	{
		name: "of nobody", rows: rows{Arrivals: []Arrival{arrived(1)}},
		says: "whose operation was made by nobody", want: sentVerdict{astray: 1},
	},
	{
		name: "stored by an operation that was rolled back", lines: sendsAs(1, poor),
		stay: []left{{Body: `{"no":"a.1","n":1}`}},
		says: "a message is stored whose operation was rolled back", want: sentVerdict{stay: 1},
	},
	{
		name: "of another key", lines: sendsAs(1, done),
		rows: rows{Parcels: []Parcel{parcel(1)}, Arrivals: []Arrival{{No: "a.1", Lane: keyOf(depots, 2), N: 1}}},
		says: "not the one of its operation", want: sentVerdict{sent: 1, astray: 1},
	},
	{
		name: "out of order", lines: slices.Concat(sendsAs(1, done), sendsAs(2, done)),
		rows: rows{Parcels: []Parcel{parcel(1), parcel(2)}, Arrivals: []Arrival{arrived(2), arrived(1)}},
		says: "behind a later one of its key", want: sentVerdict{sent: 2, effects: 2, outOfOrder: 1},
	},
	{
		name: "applied when the workers had ended, of a request and of a shared transaction",
		rows: rows{
			Services: []Service{{Request: 1, N: 4, Sent: true}, {Request: 2, N: 5}}, Receipts: []Receipt{{No: "a.1", Stock: 1, N: 7, Sent: true}, {No: "a.2", Stock: 1, N: 8}},
			Arrivals: []Arrival{{No: "request 1", Lane: keyOf(tallies, 1), N: 4, By: "end"}, {No: "a.1", Lane: keyOf(stocks, 1), N: 7, By: "a"}},
		},
		want: sentVerdict{sent: 2, effects: 2, byEnd: 1},
	},
}

// TestMessages has the judge find what is wrong, and nothing else.
func TestMessages(t *testing.T) {
	for _, tt := range messageTales {
		t.Run(tt.name, func(t *testing.T) {
			rep := &report{}
			e := &effects{t: rep, h: read(recordsOf(map[string][]line{"a": tt.lines}), nil)}
			got := e.messages(tt.rows, tt.stay, true)
			if got != tt.want {
				t.Errorf("verdict is %+v, want %+v", got, tt.want)
			}
			wantSaid(t, rep, tt.says)
		})
	}
}

// wantSaid checks what a judge has said: something with these words, or nothing.
func wantSaid(t *testing.T, rep *report, words string) {
	t.Helper()
	if said := strings.Join(rep.failed, "\n"); !strings.Contains(said, words) || words == "" && said != "" {
		t.Errorf("said %q, want %q", said, words)
	}
}

// TestOrderOfNoBed: several writers number messages in no order.
func TestOrderOfNoBed(t *testing.T) {
	rep := &report{}
	e := &effects{t: rep, h: read(nil, nil)}
	if v := e.messages(rows{Parcels: []Parcel{parcel(1), parcel(2)}, Arrivals: []Arrival{arrived(2), arrived(1)}}, nil, false); v.outOfOrder != 0 || len(rep.failed) != 0 {
		t.Errorf("the judge has said %q", rep.failed)
	}
}

// TestDepots: a parcel is there if and only if its call was done.
func TestDepots(t *testing.T) {
	for _, tt := range []struct {
		name    string
		result  string
		count   int64
		parcels []Parcel
		says    string
	}{
		{"done", done, 1, []Parcel{parcel(1)}, ""},
		{"rolled back", poor, 0, nil, ""},
		{"done, and not there", done, 0, nil, "the parcel of a call that was done is not there"},
		{"not done, and there", poor, 1, []Parcel{parcel(1)}, "the parcel of a call that was not done is there"},
		{"half", done, 1, nil, "one write of two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rep := &report{}
			e := &effects{t: rep, h: read(recordsOf(map[string][]line{"a": sendsAs(1, tt.result)}), nil)}
			e.depots([]Depot{{ID: 1, N: tt.count, Version: dbguard.Version(tt.count + 1)}}, tt.parcels)
			wantSaid(t, rep, tt.says)
		})
	}
}
