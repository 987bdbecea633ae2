package chaos_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/notify"
)

// TestRequests has requests take effect, and calls be told so.
func TestRequests(t *testing.T) {
	key := keyOf(tallies, 1)
	// ask is a call of request 1, which is made by Once.
	ask := func(do, result, answer string) []line {
		return []line{
			{T: 1, At: called, Do: do, Key: key, Kind: "once", Request: 1}, {T: 2, At: begun, Do: do}, {T: 3, At: wrote, Do: do},
			{T: 4, At: ended, Do: do}, {T: 5, At: returned, Do: do, Result: result, Answer: answer},
		}
	}
	undone := func(count int) line {
		return line{T: 9, At: event, Event: &notify.Event{ID: "1", Verdict: notify.VerdictCommitLost, Count: count}}
	}
	first := Service{Request: 1, By: "a.0", N: 1}
	for _, tt := range []struct {
		name     string
		lines    []line
		services []Service
		says     string // or nothing
	}{
		{"done", ask("a.0", done, "1 by a.0"), []Service{first}, ""},
		{"replayed", append(ask("a.0", done, "1 by a.0"), ask("a.1", duplicate, "1 by a.0")...), []Service{first}, ""},
		{"unknown, and asked again", append(ask("a.0", unknown, ""), ask("a.1", duplicate, "1 by a.0")...), []Service{first}, ""},
		{"done twice", append(ask("a.0", done, "1 by a.0"), ask("a.1", done, "2 by a.1")...), []Service{first, {Request: 1, By: "a.1", N: 2}}, "has taken effect twice"},
		{"an answer of its own", append(ask("a.0", done, "1 by a.0"), ask("a.1", duplicate, "2 by a.1")...), []Service{first}, `the answer is "2 by a.1"`},
		{"done, and not there", ask("a.0", done, "1 by a.0"), nil, "is not there"},
		{"done, lost by the database, and told", append(ask("a.0", done, "1 by a.0"), undone(1)), nil, ""},
		{"done, there, and told as lost", append(ask("a.0", done, "1 by a.0"), undone(1)), []Service{first}, "a has reported 1 commits of requests as lost that are there"},
		{"one lost, and two told", append(append(ask("a.0", done, "1 by a.0"), ask("a.1", done, "1 by a.1")...), undone(2)), []Service{{Request: 1, By: "a.1", N: 1}}, "a has reported 1 commits"},
		{"two lost, and one told", append(append(ask("a.0", done, "1 by a.0"), ask("a.1", done, "1 by a.1")...), undone(1)), nil, "is not there"},
		{"not done, and there", append(ask("a.0", busy, ""), ask("a.1", duplicate, "1 by a.0")...), []Service{first}, "that was not done is there"},
		{"a repeat of nothing", ask("a.0", duplicate, ""), nil, "that did nothing"},
		{"made by nobody", ask("a.0", done, "1 by a.0"), []Service{first, {Request: 7, By: "b.0", N: 2}}, "which nobody made"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rep := &report{}
			h := read(recordsOf(map[string][]line{"a": tt.lines}), nil)
			e := &effects{t: rep, h: h}
			e.requests(nil, tt.services)
			if said := strings.Join(rep.failed, "\n"); !strings.Contains(said, tt.says) || tt.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}
