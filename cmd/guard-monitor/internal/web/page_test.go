package web_test

import (
	"context"
	"html"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/notify"
)

var pages = []string{"/", "/incidents", "/events", "/timeline", "/clusters"}

func TestEmptyPages(t *testing.T) {
	s := newSite(t)
	for _, path := range pages {
		for _, lang := range []string{"en", "zh-CN,zh;q=0.9"} {
			body := s.page(t, path, "Accept-Language", lang)
			mustContain(t, body, `<html lang="`+lang[:2]+`"`, "<h1")
			mustNotContain(t, body, "%!", "<no value>", "<form method=\"post\"")
		}
	}
	mustContain(t, s.page(t, "/"), "All is calm", "None was ever recorded", "No event yet", "none is watched")
}

func TestOverviewAnswersTheFourQuestions(t *testing.T) {
	s := newSite(t)
	s.add(t, event("event-1"))
	s.explain(t)
	s.failover(t, time.Now().Add(-12*time.Minute))
	body := s.page(t, "/")
	mustContain(t, body, "1 open incident", "12 min ago", "orders", "Failover", "took over the slots 0-5460",
		"Find out why the old master ended", "Nobody is on it yet", `href="/incidents/`+incidentID+`"`)
	mustNotContain(t, body, "All is calm")
}

func TestCriticalIsSaid(t *testing.T) {
	s := newSite(t)
	s.explain(t, func(i *incident.Incident) { i.Cause = incident.HeartbeatSilent })
	mustContain(t, s.page(t, "/"), "1 critical", `class="verdict critical"`)
}

func TestIncidentPage(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.DocsURL = "https://docs.example/" })
	s.add(t, event("event-1"))
	s.explain(t)
	body := s.page(t, "/incidents/"+incidentID)
	mustContain(t, body, "took over the slots 0-5460", "new_epoch", "failures: 7, keys: 1", "high", "/events/event-1",
		`href="https://docs.example/docs/alerts/failover.md"`, "Nobody was told")
	body = s.page(t, "/incidents/"+incidentID, "Cookie", "guard_monitor_language=zh")
	mustContain(t, body, "故障转移", "查明旧主节点为何结束", "证据")
}

func TestEventPage(t *testing.T) {
	s := newSite(t)
	ev := event("a/b?c#d")
	s.add(t, ev)
	body := s.page(t, "/events")
	mustContain(t, body, `href="/events/a%2Fb%3Fc%23d"`)
	body = s.page(t, "/events/a%2Fb%3Fc%23d")
	mustContain(t, body, "&#34;specversion&#34;", "order:1", "the database refused the write of orders", "not grouped yet")
	body = s.page(t, "/events/a%2Fb%3Fc%23d", "Cookie", "guard_monitor_language=zh")
	mustContain(t, body, "两个调用者同时以键 &#34;order:1&#34; 写入", "数据库于")
	mustNotContain(t, body, "the database refused")
}

// Services choose the ids of events, and every event has a page.
func TestStrangeEventIDs(t *testing.T) {
	s := newSite(t)
	srv := s.server(t)
	link := regexp.MustCompile(`<td class="when"><a href="([^"]+)"`)
	language := regexp.MustCompile(`href="(/language[^"]+)"`)
	for _, id := range []string{".", "..", "...", "../..", "a/b", "a/../b", "/", "//x", "%2e", "?id=x", "#", `\`, "event"} {
		ev := event(id)
		ev.Key = "key of " + strconv.Quote(id)
		s.add(t, ev)
		m := link.FindStringSubmatch(s.page(t, "/events"))
		if m == nil {
			t.Fatalf("%q is not listed", id)
		}
		res, err := srv.Client().Get(srv.URL + html.UnescapeString(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), html.EscapeString(ev.Key)) || !strings.Contains(string(body), `id="raw-title"`) {
			t.Errorf("%q at %s: %d, %v", id, m[1], res.StatusCode, err)
		}
		back := language.FindSubmatch(body)
		if back == nil {
			t.Fatalf("the page of %q has no link to the other language", id)
		}
		if got := s.get(t, html.UnescapeString(string(back[1]))).Header().Get("Location"); got != html.UnescapeString(m[1]) {
			t.Errorf("the link to the other language leads from %s to %s", m[1], got)
		}
	}
	if v := s.json(t, "/api/v1/event?id=.."); v["event"].(map[string]any)["id"] != ".." {
		t.Errorf("the API has %v", v)
	}
	if w := s.get(t, "/event"); w.Code != http.StatusNotFound {
		t.Errorf("no id: %d", w.Code)
	}
}

func TestStoreThatTakesNothing(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Broker = broker{err: intake.ErrHandler} })
	body := s.page(t, "/")
	mustContain(t, body, "The store takes no events", "Calm as far as is known")
	mustNotContain(t, body, "The broker does not answer", "All is calm")
}

func TestTextsInChinese(t *testing.T) {
	s := newSite(t)
	s.add(t, event("event-1"))
	s.explain(t, func(i *incident.Incident) {
		itself := incident.Evidence{At: time.Now(), Kind: incident.Reported, Report: &incident.Report{Verdict: notify.VerdictLost, Outcome: notify.OutcomeRefused, Key: "order:1"}}
		i.Evidence = []incident.Evidence{itself, i.Evidence[0], {At: time.Now(), Kind: incident.Sentence, Stored: "words of another version"}}
	})
	s.failover(t, time.Now().Add(-2*time.Minute))
	for _, path := range []string{"/", "/incidents", "/incidents/" + incidentID, "/timeline"} {
		body := s.page(t, path, "Cookie", "guard_monitor_language=zh")
		mustContain(t, body, "从 127.0.0.1:7001 接管了槽 0-5460")
		mustNotContain(t, body, "took over")
	}
	mustContain(t, s.page(t, "/incidents/"+incidentID, "Cookie", "guard_monitor_language=zh"), `<span lang="en">words of another version</span>`)
}

// The API has kind and arguments beside the English text.
func TestAPIHasArguments(t *testing.T) {
	s := newSite(t)
	s.add(t, event("event-1"))
	s.explain(t)
	s.failover(t, time.Now())
	const says = "127.0.0.1:7004 took over the slots 0-5460 from 127.0.0.1:7001 (config epoch 7, before 1)"
	for path, want := range map[string][]string{
		"/api/v1/incidents": {`"kind":"seen"`, `"for":1200000000`, `"peer":"127.0.0.1:7001"`, says + `, seen 1.2s before the event"`,
			`"numbers":{"new_epoch":7,"old_epoch":1}`, `"next_step":"Find out why the old master ended`},
		"/api/v1/timeline": {`"kind":"failover"`, `"peer":"127.0.0.1:7001"`, says, `"numbers":{"new_epoch":7,"old_epoch":1}`},
	} {
		mustContain(t, s.get(t, path).Body.String(), want...)
	}
}

// The rows are those of the filter, the bars are not, and say so.
func TestTimelineOfAService(t *testing.T) {
	s := newSite(t)
	s.add(t, event("event-1"))
	body := s.page(t, "/timeline?service=payments")
	mustContain(t, body, "Events of all services over time", "1 events, 0 failovers", "events of all services; a bar is")
	mustNotContain(t, body, "order:1")
	mustContain(t, s.page(t, "/timeline?service=payments", "Accept-Language", "zh"), "所有服务的事件随时间分布", "所有服务的事件；每柱")
}

func TestTimelinePage(t *testing.T) {
	s := newSite(t)
	s.add(t, event("event-1"))
	s.add(t, event("event-2"))
	s.failover(t, time.Now().Add(-2*time.Minute))
	body := s.page(t, "/timeline")
	mustContain(t, body, "2 events, 1 failovers", `class="failover"`, "and 1 more", "took over the slots")
	mustContain(t, s.page(t, "/timeline?from=2020-01-01&to=2020-01-02"), "Nothing happened in this time")
}

// The pages say how many dead letters there are, and how to look at them.
func TestDeadLettersAreCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		broker broker
		want   string
		json   any
	}{
		"none":    {broker{}, "0", 0.0},
		"some":    {broker{dead: 2}, `<span class="poor">2</span> <code>guard-monitor dlq list</code>`, 2.0},
		"unknown": {broker{err: errAway, dead: 2}, "not known", nil},
	} {
		s := newSite(t, func(c *web.Config) { c.Broker = tt.broker })
		mustContain(t, s.page(t, "/"), "<dt>Dead letters</dt><dd>"+tt.want+"</dd>")
		if n := s.json(t, "/api/v1/overview")["dead_letters"]; n != tt.json {
			t.Errorf("%s: the API has %v dead letters, want %v", name, n, tt.json)
		}
	}
}

func TestStaleStatesAreSaid(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Broker = broker{err: errAway} })
	body := s.page(t, "/")
	mustContain(t, body, "The broker does not answer", "Calm as far as is known", "not connected")
	mustNotContain(t, body, "All is calm")

}

// Which service is silent is for the tracker to say: pages and API read its
// incidents.
func TestSilentServices(t *testing.T) {
	s := newSite(t)
	err := s.store.AddHeartbeat(t.Context(), incident.Heartbeat{
		Service: "orders", Instance: "1", At: time.Now(), Every: time.Second, ReceivedAt: time.Now().Add(-time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	silent := func() any {
		return s.json(t, "/api/v1/services")["items"].([]any)[0].(map[string]any)["silent"]
	}
	mustNotContain(t, s.page(t, "/"), "no data since", "Silent services")
	if silent() != false {
		t.Error("the API has a service silent that no incident is about")
	}
	s.explain(t, func(i *incident.Incident) { i.Cause = incident.HeartbeatSilent })
	mustContain(t, s.page(t, "/"), "no data since", "Silent services")
	if silent() != true {
		t.Error("the API has a service not silent whose silence is an incident")
	}
	s.explain(t, func(i *incident.Incident) { i.Cause, i.State = incident.HeartbeatSilent, incident.Resolved })
	mustNotContain(t, s.page(t, "/"), "no data since", "Silent services")
}

func TestStoreThatDoesNotAnswer(t *testing.T) {
	s := newSite(t)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/events", "/incidents", "/timeline", "/events/x", "/incidents/x"} {
		w := s.get(t, path)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, w.Code)
		}
		mustContain(t, w.Body.String(), "The store does not answer")
		mustNotContain(t, w.Body.String(), "All is calm", "No event yet", "sql:")
	}
}

// uncounted is a store that counts nothing in time.
type uncounted struct{ *store.Store }

func (uncounted) EventsPer(context.Context, time.Time, time.Duration, int) ([]store.Bounded, error) {
	return nil, context.DeadlineExceeded
}

func TestPagesWithoutCounts(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Store = uncounted{c.Store.(*store.Store)} })
	s.add(t, event("event-1"))
	s.explain(t)
	s.failover(t, time.Now().Add(-2*time.Minute))
	const uncounted = "The events could not be counted in time."
	body := s.page(t, "/")
	mustContain(t, body, "1 open incident", "order:1", uncounted)
	mustNotContain(t, body, "in the last hour,")
	body = s.page(t, "/timeline")
	mustContain(t, body, "took over the slots", "order:1", `class="failover"`, uncounted)
	mustNotContain(t, body, "0 events", "the highest")
	v := s.json(t, "/api/v1/overview")
	if n, ok := v["events_last_hour"]; ok || v["open_incidents"] != 1.0 {
		t.Errorf("the API has %v events, %v open incidents", n, v["open_incidents"])
	}
	if n, ok := newSite(t).json(t, "/api/v1/overview")["events_last_hour"]; n != 0.0 || !ok {
		t.Errorf("the API has %v events of none", n)
	}
}

// flooded is a store whose counts stop at a bound in one step.
type flooded struct {
	*store.Store
	step int
}

func (f flooded) EventsPer(_ context.Context, _ time.Time, _ time.Duration, n int) ([]store.Bounded, error) {
	counts := make([]store.Bounded, n)
	for i := range counts {
		counts[i].N = 1
	}
	counts[f.step] = store.Bounded{N: 500, More: true}
	return counts, nil
}

// A count is "more than" where it stopped at its bound, and only there.
func TestCountsThatStopped(t *testing.T) {
	for step, want := range map[int][]string{
		3:   {"60 in the last hour, &gt; 559 in the hour before", "60 in all, 1 in the busiest minute", "busiest minute: 1<"},
		100: {"&gt; 559 in the last hour, 60 in the hour before", "&gt; 559 in all, &gt; 500 in the busiest minute", "busiest minute: &gt; 500<"},
	} {
		s := newSite(t, func(c *web.Config) { c.Store = flooded{c.Store.(*store.Store), step} })
		mustContain(t, s.page(t, "/"), want...)
		mustContain(t, s.page(t, "/timeline"), "as marks: &gt; 619 events, 0 failovers", "the highest &gt; 500<")
		if v := s.json(t, "/api/v1/overview"); v["events_at_least"] != true {
			t.Errorf("the API has %v", v)
		}
	}
	if v := newSite(t).json(t, "/api/v1/overview"); v["events_at_least"] != false {
		t.Errorf("the API has %v", v)
	}
}

func TestHostileText(t *testing.T) {
	s := newSite(t, withWrites)
	const script = `</code><script>alert(1)</script><img src=x onerror=alert(2)>`
	ev := event(`"><script>`)
	ev.Service, ev.Instance, ev.Key, ev.Table, ev.Owner = script, script, script+"\u202e\x1b[2J", script, script
	ev.Place.Node = script
	s.add(t, ev)
	s.explain(t, func(i *incident.Incident) {
		i.Service, i.AckedBy = script, script
		i.Evidence = append(i.Evidence, incident.Evidence{Kind: incident.Sentence, Stored: script + "\x1b"}, incident.Evidence{Kind: incident.NotWatched, Node: script})
	})
	err := s.store.Acknowledge(t.Context(), incidentID, script, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(pages, "/incidents/"+incidentID, "/events/%22%3E%3Cscript%3E",
		"/events?key=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/incidents?show=%3Cscript%3E", "/language?to=en%3Cscript%3E") {
		body := strings.ReplaceAll(s.get(t, path).Body.String(), `<script src="/assets/`, "")
		mustNotContain(t, body, "<script", "<img", "\u202e", "\x1b")
	}
	for _, path := range []string{"/api/v1/events", "/api/v1/incidents", "/api/v1/overview"} {
		mustNotContain(t, s.get(t, path).Body.String(), "<script", "<img", "\x1b")
	}
	ev = event("long")
	ev.Key = strings.Repeat("k", 1<<20)
	s.add(t, ev)
	if n := len(s.page(t, "/events")); n > 64<<10 {
		t.Errorf("a long key makes a page of %d bytes", n)
	}
}

func TestFilters(t *testing.T) {
	s := newSite(t)
	for id, change := range map[string]func(*notify.Event){
		"one":   func(*notify.Event) {},
		"two":   func(ev *notify.Event) { ev.Service, ev.Key = "payments", "pay:2" },
		"three": func(ev *notify.Event) { ev.Verdict, ev.CaughtAt = notify.VerdictLost, time.Now().Add(-48*time.Hour) },
	} {
		ev := event(id)
		change(&ev)
		s.add(t, ev)
	}
	for query, want := range map[string]string{
		"":                                    "one two three",
		"service=payments":                    "two",
		"key=order:1":                         "one three",
		"verdict=lost":                        "three",
		"verdict=lost,overlap&service=orders": "one three",
		"from=" + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339): "one two",
		"service=nobody":                         "",
		"table=orders&verdict=overlap&key=pay:2": "two",
	} {
		body := s.page(t, "/events?"+strings.ReplaceAll(query, "+", "%2B"))
		for _, id := range []string{"one", "two", "three"} {
			if got, want := strings.Contains(body, `/events/`+id+`"`), strings.Contains(want, id); got != want {
				t.Errorf("%q: event %s shown: %t, want %t", query, id, got, want)
			}
		}
	}
	for _, bad := range []string{"/events?verdict=x", "/events?from=yesterday", "/events?before=-1", "/incidents?cause=x",
		"/incidents?show=x", "/timeline?hours=0", "/timeline?from=2026-01-02&to=2026-01-01", "/events?key=" + strings.Repeat("a", 600), "/api/v1/events?limit=0"} {
		if w := s.get(t, bad); w.Code != http.StatusBadRequest {
			t.Errorf("%.60s: %d, want 400", bad, w.Code)
		}
	}
}

func TestNoIncidentIsCalmOnlyUnfiltered(t *testing.T) {
	s := newSite(t)
	const calm = "No open incident."
	mustContain(t, s.page(t, "/incidents"), calm)
	for _, query := range []string{"service=ordres", "cluster=x", "to=2020-01-01", "before=x", "show=resolved", "show=all"} {
		body := s.page(t, "/incidents?"+query)
		mustContain(t, body, "No incident fits.")
		mustNotContain(t, body, calm)
	}
}

func TestPaging(t *testing.T) {
	s := newSite(t)
	for i := range 120 {
		ev := event("e" + time.Duration(i).String())
		s.add(t, ev)
	}
	seen, path := 0, "/events"
	for range 5 {
		body := s.page(t, path)
		seen += strings.Count(body, `<td class="when">`)
		_, rest, found := strings.Cut(body, `<a href="/events?before=`)
		if !found {
			break
		}
		rest, _, _ = strings.Cut(rest, `"`)
		if !strings.Contains(body, ">Older<") {
			break
		}
		path = "/events?before=" + rest
	}
	if seen != 120 {
		t.Errorf("%d events on all pages, want 120", seen)
	}
}

func TestPrefix(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.ExternalURL = "https://monitor.example.com/belay" })
	s.add(t, event("event-1"))
	for _, path := range []string{"/belay/", "/"} {
		body := s.page(t, path)
		mustContain(t, body, `href="/belay/events"`, `src="/belay/assets/live.js`, `data-base="/belay"`, `href="/belay/events/event-1"`)
		mustNotContain(t, body, `href="/events`)
	}
	if w := s.get(t, "/belay"); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/belay/" {
		t.Errorf("/belay: %d %q", w.Code, w.Header().Get("Location"))
	}
	if w := s.get(t, "/belay/language?to=zh&back=/events"); w.Header().Get("Location") != "/belay/events" {
		t.Errorf("language leads to %q", w.Header().Get("Location"))
	}
	for _, back := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", ""} {
		w := s.get(t, "/language?to=zh&back="+back)
		if got := w.Header().Get("Location"); got != "/belay/" {
			t.Errorf("back %q leads to %q", back, got)
		}
	}
}
