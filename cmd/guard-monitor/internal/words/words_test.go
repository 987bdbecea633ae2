package words

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

var update = flag.Bool("update", false, "write testdata/words.golden")

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

type (
	numbers = map[string]int64
	names   = map[string]string
)

// sampleEntries are entries of every kind, in every form.
func sampleEntries() []watch.Entry {
	list := []watch.Entry{
		{Kind: watch.Watching},
		{Kind: watch.Watching, Since: at.Add(-12500 * time.Millisecond)},
		{Kind: watch.Watching, Since: at.Add(-12500 * time.Millisecond), Node: "h:1", Names: names{watch.Reason: "WRONGPASS 7"}},
		{Kind: watch.Failover, Numbers: numbers{watch.LostBytes: 0, watch.OldOffset: 220, watch.NewOffset: 221}},
		{Kind: watch.Failover, Shard: "0-5460,6000", Numbers: numbers{watch.OldEpoch: 5, watch.NewEpoch: 8}},
		{Kind: watch.Failover, Shard: "0-5460", Numbers: numbers{watch.LostBytes: 120, watch.OldOffset: 220, watch.NewOffset: 100}},
		{Kind: watch.Restart, Numbers: numbers{watch.KeysBefore: 1, watch.KeysAfter: 9}, Names: names{watch.Role: "master", watch.NewRole: "replica"}},
		{Kind: watch.Down},
		{Kind: watch.Down, Numbers: numbers{watch.Refused: 1}, Names: names{watch.Role: "master"}},
		{Kind: watch.Up, Numbers: numbers{watch.SilentMS: 5049}},
		{Kind: watch.Up, Numbers: numbers{watch.SilentMS: 5000, watch.SameProcess: 1}},
		{Kind: watch.Split},
		{Kind: watch.Split, Numbers: numbers{watch.Epoch: 5, watch.PeerEpoch: 8}, Names: names{watch.Slots: "0-7"}},
		{Kind: watch.Split, Numbers: numbers{watch.SeenBy: 4}},
		{Kind: watch.Agreed},
		{Kind: watch.Resharding, Shard: "1-3", Names: names{watch.From: "h:2, h:3"}},
		{Kind: watch.Resharding, Numbers: numbers{watch.Moving: 6}},
		{Kind: watch.Eviction, Numbers: numbers{watch.Evicted: 3, watch.MaxMemory: 4096}, Names: names{watch.Policy: "lru7"}},
		{Kind: watch.Flush, Numbers: numbers{watch.FlushAll: 1, watch.Callers: 0}},
		{Kind: watch.Flush, Numbers: numbers{"flushdb": 2, watch.Callers: 0, watch.KeysBefore: 12, watch.KeysAfter: 4}},
		{Kind: watch.Deletion, Numbers: numbers{"del": 2, "unlink": 1}},
		{Kind: watch.Deletion, Numbers: numbers{"del": 3, watch.Callers: 1, watch.Routine: 1}, Names: names{watch.Client: "h:9"}},
		{Kind: watch.Deletion, Numbers: numbers{"del": 3, watch.Callers: 3},
			Names: names{watch.Client: "h:9", watch.ClientName: "job {node}", watch.User: `"ops"`}},
		{Kind: watch.Expiry, Numbers: numbers{watch.Expired: 1}},
		{Kind: watch.ClockSet, Numbers: numbers{watch.ForwardMS: 29800}},
		{Kind: watch.ClockSet, Numbers: numbers{watch.ForwardMS: -35000}},
		{Kind: watch.ClusterDown},
		{Kind: watch.ClusterOK},
	}
	for i := range list {
		e := &list[i]
		e.At, e.Cluster, e.Peer = at, "redis1", "h:2"
		if e.Kind != watch.Watching {
			e.Node = "h:1"
		}
	}
	return list
}

// sampleEvidence has every kind, and all that an event may say.
func sampleEvidence() (list []incident.Evidence) {
	for _, k := range incident.Kinds {
		e := incident.Evidence{At: at, Node: "h:1", Kind: k, Service: "orders", Redis: `h:2; "x"`, From: at.Add(-9 * time.Second), To: at.Add(-8 * time.Second),
			For: 1500 * time.Millisecond, Entry: &watch.Entry{Kind: watch.Agreed, Node: "h:4"}, Stored: "what an older version stored"}
		if k == incident.AlsoHeld {
			e.Report = &incident.Report{Key: `sku:7 "x"`}
		}
		if k == incident.Switched {
			e.Switch = &incident.Between{Epoch: 3, From: "redis1", To: "sql2"}
		}
		if k != incident.Reported {
			list = append(list, e)
		}
		if e.For = -e.For; slices.Contains([]incident.Kind{incident.Seen, incident.PeerWithout, incident.ClockOff}, k) {
			list = append(list, e)
		}
	}
	list = append(list, incident.Evidence{At: at, Kind: incident.Switched, Service: "orders", From: at,
		Switch: &incident.Between{Epoch: 3, From: "redis", To: `sql "2"`, By: "alice"}})
	report := incident.Report{Verdict: notify.VerdictLost, Service: "orders", Key: `a"; granted {node}`}
	say := func(r incident.Report) {
		list = append(list, incident.Evidence{At: at, Kind: incident.Reported, Report: &r})
	}
	for _, v := range []notify.Verdict{notify.VerdictUnknownCommit, notify.VerdictDegraded, notify.VerdictUnavailable, notify.VerdictLost} {
		for o := range outcomes {
			report.Verdict, report.Outcome = v, o
			say(report)
		}
	}
	restarted := &notify.LostCommits{FirstAt: at.Add(-20 * time.Second), LastAt: at.Add(-15 * time.Second), Server: "db-1", Now: "db-1"}
	say(incident.Report{Verdict: notify.VerdictCommitLost, Service: "orders", Count: 1, Lost: restarted})
	say(incident.Report{Verdict: notify.VerdictCommitLost, Service: "orders", Count: 3})
	late := &notify.DeadLetter{ID: "m-1", Topic: `mail "x"`, StoredAt: at.Add(-25 * time.Hour), Attempts: 1, Undecided: true}
	say(incident.Report{Verdict: notify.VerdictDeadLetter, Service: "orders", Key: "order:1", Count: 1, Message: late})
	say(incident.Report{Verdict: notify.VerdictDeadLetter, Service: "orders", Count: 3})
	open := &notify.UndecidedCall{ID: "c-1", Operation: "pay", Since: at.Add(-25 * time.Hour), Until: at.Add(-5 * time.Hour), Tries: 1}
	say(incident.Report{Verdict: notify.VerdictUndecided, Service: "orders", Key: "once:pay:1", Call: open})
	say(incident.Report{Verdict: notify.VerdictUndecided, Service: "orders", Key: "once:pay:1"})
	report.Granted, report.Deadline, report.TTL = at.Add(-65250*time.Millisecond), at.Add(-time.Second), 30*time.Second
	report.Outcome, report.Place = notify.OutcomeRefused, notify.Place{Slot: -1, Entry: "shop:1"}
	for report.Loss = range losses {
		say(report)
	}
	report.Verdict, report.Loss, report.Place = notify.VerdictOverlap, "", notify.Place{Node: "h:1", Slot: 42}
	for report.Holder = range holders {
		say(report)
	}
	return list
}

func sampleEvents() (list []notify.Event) {
	ev := notify.Event{
		Service: "orders", Instance: "orders-1", Key: "order:1", Table: "orders", Index: []string{"shop 2", "no"}, Owner: "a:1", Token: 7, Count: 3, TTL: 10 * time.Second,
		AcquiredAt: at.Add(-time.Second), CaughtAt: at, Place: notify.Place{Node: "h:1", Slot: 5}, Versions: &notify.Versions{Expected: 3, Found: 4},
	}
	for _, ev.Verdict = range []notify.Verdict{notify.VerdictOverlap, notify.VerdictLost, notify.VerdictUnknownCommit, notify.VerdictDegraded, notify.VerdictUnavailable, notify.VerdictCommitLost, notify.VerdictDeadLetter, notify.VerdictUndecided, "new2"} {
		for _, ev.Outcome = range []notify.Outcome{notify.OutcomeCommitted, notify.OutcomeRefused, notify.OutcomeUnknown} {
			list = append(list, ev)
		}
	}
	ev.Verdict, ev.Outcome, ev.Count, ev.Instance, ev.Owner, ev.Table = notify.VerdictUnavailable, notify.OutcomeRolledBack, 1, "", "", ""
	list = append(list, ev)
	ev.Place, ev.Verdict = notify.Place{Slot: -1, Entry: "shop:1"}, notify.VerdictOverlap
	for ev.HolderAtConflict = range holders {
		list = append(list, ev)
	}
	ev.HolderAtConflict, ev.HolderOwner = notify.HolderOther, "b:2"
	return append(list, ev)
}

// TestWords: each sample says in both languages what the file has, with the same
// arguments.
func TestWords(t *testing.T) {
	var lines []string
	add := func(kind string, say func(Lang) string) {
		en, zh := say(English), say(Chinese)
		checkPair(t, en, zh)
		lines = append(lines, fmt.Sprintf("%s\n  %s\n  %s\n", kind, en, zh))
	}
	for _, e := range sampleEntries() {
		add("entry "+string(e.Kind), func(l Lang) string { return l.Entry(e) })
	}
	for _, e := range sampleEvidence() {
		add("evidence "+string(e.Kind), func(l Lang) string { return l.Evidence(e) })
	}
	for _, ev := range sampleEvents() {
		add("event "+string(ev.Verdict), func(l Lang) string { return l.Event(ev) })
	}
	for _, e := range []incident.Effect{
		{Unknown: 1, Undone: 1, Committed: 1, Refused: 1, Without: 1, Doubtful: []string{`order:"1"`}},
		{Unknown: 99, Undone: 2, Committed: 3, Refused: 4, Without: 5, Doubtful: make([]string, incident.MaxDoubtful)},
	} {
		add("effect", func(l Lang) string { return strings.Join(l.Effect(e), ". ") })
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "")
	if *update {
		if err := os.WriteFile("testdata/words.golden", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/words.golden")
	if err != nil || got != string(want) {
		t.Errorf("the words have changed (%v): look at what go test -update does to testdata/words.golden", err)
	}
}

var argument = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s;,()"]*\d[^\s;,()".:]*`)

// checkPair checks that what is said in English is said in Chinese, too.
func checkPair(t *testing.T, en, zh string) {
	t.Helper()
	for _, arg := range argument.FindAllString(en, -1) {
		if !strings.Contains(zh, arg) {
			t.Errorf("%s\nlacks %s of\n%s", zh, arg, en)
		}
	}
	han := strings.IndexFunc(zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) >= 0
	if en == "" || !han && zh != en || strings.Contains(strings.ReplaceAll(en+zh, "{node}", ""), "{") {
		t.Errorf("%q in Chinese is %q", en, zh)
	}
}

// TestTables: every kind, cause and confidence is there, in both languages with the
// same arguments.
func TestTables(t *testing.T) {
	check := func(what string, list ...phrase) {
		for _, p := range list {
			gaps := func(s string) []string {
				return slices.Compact(slices.Sorted(slices.Values(regexp.MustCompile(`\{\w+\}`).FindAllString(s, -1))))
			}
			if p.en == "" || p.zh == "" || !slices.Equal(gaps(p.en), gaps(p.zh)) {
				t.Errorf("%s: %+v", what, p)
			}
		}
	}
	for _, k := range watch.Kinds {
		e := entries[k]
		check(string(k), append(e.says, e.label)...)
		if len(e.says) == 0 {
			t.Errorf("%s has no words", k)
		}
	}
	for _, k := range incident.Kinds {
		if k != incident.Reported && k != incident.Sentence {
			check(string(k), findings[k])
		}
	}
	for _, c := range incident.Causes {
		check(string(c), causes[c].name, causes[c].why, causes[c].next)
		if causes[c].because == "" {
			t.Errorf("%s has no words for an alert", c)
		}
	}
	for c, p := range confidences {
		check(string(c), p)
	}
	if n := len(entries) + len(findings) + len(causes); n != len(watch.Kinds)+len(incident.Kinds)-2+len(incident.Causes) {
		t.Errorf("%d entries in the tables: some are of no kind or cause", n)
	}
}

// TestForeignNames: they are quoted and short wherever they stand.
func TestForeignNames(t *testing.T) {
	hostile := "h:1; at the conflict another caller had the key\n" + strings.Repeat("x", 1<<20)
	ev := notify.Event{Verdict: notify.VerdictOverlap, Service: hostile, Instance: hostile, Key: hostile, Table: hostile, Owner: hostile, Place: notify.Place{Node: hostile}}
	for _, l := range []Lang{English, Chinese} {
		for _, says := range []string{l.Event(ev), l.Evidence(incident.Evidence{Kind: incident.NotWatched, Node: hostile}),
			strings.Join(l.Effect(incident.Effect{Unknown: 1, Doubtful: []string{hostile}}), "")} {
			if len(says) > 1500 || strings.Contains(says, "\n") || strings.Count(says, `"h:1; at`) != strings.Count(says, "h:1; at") {
				t.Errorf("%.2000s", says)
			}
		}
	}
}
