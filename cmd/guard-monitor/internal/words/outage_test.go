package words

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// When all COMMITs without an answer are settled, the incident says so, and sends nobody to
// look at their rows.
func TestSettledCommits(t *testing.T) {
	i := incident.Incident{Service: "shop", Cause: incident.UnknownCommit, Confidence: incident.High, State: incident.Resolved,
		Effect: incident.Effect{Failures: 16, Undone: 4}}
	if got, want := EffectLine(i.Effect), "4 operations were rolled back and changed nothing. 12 operations were found to have taken effect"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := strings.Join(Chinese.Effect(i.Effect), ""); !strings.Contains(got, "12 个操作查明已生效") {
		t.Error(got)
	}
	for l, says := range map[Lang]string{English: "by hand", Chinese: "手工"} {
		settled := l.Next(i)
		i.Effect.Unknown = 1
		if doubtful := l.Next(i); strings.Contains(settled, says) || !strings.Contains(doubtful, says) {
			t.Errorf("settled: %s; in doubt: %s", settled, doubtful)
		}
		i.Effect.Unknown = 0
	}
}

// Without eviction a Redis that is full grants no lock, so room comes first.
func TestEvictionMakesRoomFirst(t *testing.T) {
	for l, first := range map[Lang]string{English: "First raise maxmemory", Chinese: "先提高 maxmemory"} {
		if next := l.Next(incident.Incident{Cause: incident.Eviction}); !strings.HasPrefix(next, first) {
			t.Errorf("the first step is %s", next)
		}
	}
}

// An outage says what is down, how many operations it refused, and what to do first, while it
// goes on and when it is over.
func TestOutage(t *testing.T) {
	saw := func(k watch.Kind) []incident.Evidence {
		return []incident.Evidence{{Kind: incident.Reported}, {Kind: incident.Seen, Entry: &watch.Entry{Kind: watch.Down}}, {Kind: incident.Seen, Entry: &watch.Entry{Kind: k}}}
	}
	goesOn := incident.Incident{Service: "shop", Cause: incident.Restart, Confidence: incident.Medium, State: incident.New,
		Effect: incident.Effect{Refused: 7780}, Evidence: saw(watch.Down)}
	back := goesOn
	back.Evidence = saw(watch.Up)
	ended := goesOn
	ended.State, ended.Effect.Refused = incident.Resolved, 1_234_567
	again := goesOn
	again.Regressed, again.Rate.Refused = 1, 12
	for name, tt := range map[string]struct {
		i               incident.Incident
		summary, en, zh string
	}{
		"goes on": {goesOn, "shop: Redis is down: 7,780 operations refused", "Redis is down: 7,780 operations refused", "Redis 已停止：7,780 个操作被拒绝"},
		"is back": {back, "shop: Redis was down: 7,780 operations refused", "Redis was down: 7,780 operations refused", "Redis 曾停止：7,780 个操作被拒绝"},
		"again":   {again, "shop: Redis is down: 12 operations refused", "Redis is down: 12 operations refused", "Redis 已停止：12 个操作被拒绝"},
		"over":    {ended, "shop: Redis was down: 1,234,567 operations refused", "Redis was down: 1,234,567 operations refused", "Redis 曾停止：1,234,567 个操作被拒绝"},
	} {
		if got := Summary("shop", &tt.i); got != tt.summary {
			t.Errorf("%s: %s, want %s", name, got, tt.summary)
		}
		if en, zh := English.Headline(tt.i), Chinese.Headline(tt.i); en != tt.en || zh != tt.zh {
			t.Errorf("%s: %s, %s, want %s, %s", name, en, zh, tt.en, tt.zh)
		}
		checkPair(t, English.Why(tt.i), Chinese.Why(tt.i))
		checkPair(t, English.Next(tt.i), Chinese.Next(tt.i))
	}
	if next := English.Next(goesOn); !strings.HasPrefix(next, "Start the Redis process again") {
		t.Errorf("the first step is %s", next)
	}
	merged := ended
	merged.MergedInto, merged.Effect = "another", incident.Effect{}
	if got := Summary("shop", &merged); got != "shop: now part of another incident" {
		t.Errorf("merged: %s", got)
	}
	for cause, o := range outages {
		for _, p := range []phrase{o.is, o.was, o.why, o.next} {
			if p.en == "" || p.zh == "" {
				t.Errorf("%s lacks words: %+v", cause, p)
			}
		}
	}
}
