package web

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// Every text that a page asks for is there in both languages, and every text is
// asked for.
func TestMessagesAreComplete(t *testing.T) {
	used := make(map[string]bool)
	prefixes := make(map[string]bool)
	files, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := pageFiles.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\.T "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`\.(?:T \(print|Word) "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			prefixes[m[1]] = true
		}
	}
	if len(used) < 80 || len(prefixes) < 8 {
		t.Fatalf("only %d texts and %d sets found", len(used), len(prefixes))
	}
	set := func(prefix string, values ...string) {
		for _, v := range values {
			used[prefix+v] = true
		}
		delete(prefixes, prefix)
	}
	for _, s := range incident.States {
		set("state.", string(s))
	}
	for _, v := range verdicts {
		set("verdict.", string(v))
	}
	for _, o := range []notify.Outcome{notify.OutcomeCommitted, notify.OutcomeRefused, notify.OutcomeRolledBack, notify.OutcomeUnknown} {
		set("outcome.", string(o))
	}
	for _, m := range []watch.Mode{watch.Undetermined, watch.Single, watch.Sentinel, watch.Clustered} {
		set("mode.", string(m))
	}
	set("reason.", "first notification", "new alerts added", "some alerts resolved", "all alerts resolved", "repeat interval elapsed",
		"escalated", "cause found", "more operations", "not acknowledged", "digest", "not sent")
	set("failed", "", ".status", ".code", ".no_code", ".not_ok", ".silent")
	set("for.", "1h", "4h", "24h", "168h")
	set("action.", "acknowledge", "unacknowledge", actionSilence, actionEndSilence, actionSettle)
	set("found.", "committed", "rolled_back")
	set("role.", "", "master", "replica")
	set("severity.", "critical", "warning")
	set("show.", showOpen, showResolved, showAll)
	set("window.", "1", "6", "24", "168")
	set("nav.", "overview", "incidents", "events", "timeline", "clusters")
	for prefix := range prefixes {
		t.Errorf("nobody knows the values of %q", prefix)
	}
	for key := range used {
		if _, ok := messages[key]; !ok {
			t.Errorf("there is no text %q", key)
		}
	}
	verbs := regexp.MustCompile(`%[a-z]`)
	for key, m := range messages {
		if m.en == "" || m.zh == "" {
			t.Errorf("%q is not in both languages", key)
		}
		if a, b := strings.Join(verbs.FindAllString(m.en, -1), ""), strings.Join(verbs.FindAllString(m.zh, -1), ""); a != b {
			t.Errorf("%q has %q in English and %q in Chinese", key, a, b)
		}
		if strings.IndexFunc(m.en, func(r rune) bool { return unicode.Is(unicode.Han, r) }) >= 0 && key != "language.other" {
			t.Errorf("%q has Chinese in its English text", key)
		}
		if !used[key] {
			t.Errorf("no page uses %q", key)
		}
	}
}
