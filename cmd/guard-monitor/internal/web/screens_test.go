package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/notify"
)

// trouble adds to what a busySite has: an incident that somebody looks after, and
// one whose outcome nobody knows.
func (s *site) trouble(tb testing.TB) {
	tb.Helper()
	now := time.Now()
	s.explain(tb, func(i *incident.Incident) {
		down := watch.Entry{At: now.Add(-12 * time.Minute), Kind: watch.Down, Node: "127.0.0.1:7001",
			Numbers: map[string]int64{watch.Refused: 1}, Names: map[string]string{watch.Role: "master"}}
		failover := takeover(down.At)
		failover.Numbers = map[string]int64{watch.LostBytes: 120, watch.OldOffset: 220, watch.NewOffset: 100, watch.NewEpoch: 7, watch.OldEpoch: 1}
		i.Evidence = []incident.Evidence{
			{At: down.At, Node: "orders-1", Kind: incident.Reported, Report: &incident.Report{
				Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused, Key: "order:1", Granted: down.At.Add(-5687 * time.Millisecond), TTL: 30 * time.Second,
				Place: notify.Place{Node: "127.0.0.1:7001", Slot: 42}, Loss: notify.LossGone, Holder: notify.HolderNone,
			}},
			seen(down, 4150*time.Millisecond), seen(failover, 142*time.Millisecond),
		}
	})
	ev := event("0196f9c4-0000-7000-8000-000000000099")
	ev.Verdict, ev.Outcome, ev.Service, ev.Key, ev.Count, ev.CaughtAt = notify.VerdictUnknownCommit, notify.OutcomeUnknown, "payments", "pay:77120", 1, now.Add(-3*time.Minute)
	s.add(tb, ev)
	s.explain(tb, func(i *incident.Incident) {
		i.ID, i.Key, i.Service, i.Cause, i.Confidence, i.State = incidentID[:35]+"b", "u", "payments", incident.Unknown, incident.Low, incident.New
		i.Cluster, i.Shard, i.FirstAt, i.DocLink = "", "", now.Add(-3*time.Minute), incident.DocLink(incident.Unknown)
		i.Evidence = []incident.Evidence{{At: now.Add(-3 * time.Minute), Node: "payments-2", Kind: incident.Reported,
			Report: &incident.Report{Verdict: notify.VerdictUnknownCommit, Outcome: notify.OutcomeUnknown, Key: "pay:77120"}}}
	})
	if err := s.store.Acknowledge(tb.Context(), incidentID, "alice", now.Add(-2*time.Minute)); err != nil {
		tb.Fatal(err)
	}
	over := incident.Record{Epoch: 4, From: "redis-of-the-warehouse", To: "sql", By: "first process", Settled: true}
	moving := incident.Record{Epoch: 2, From: "redis", To: "sql", By: "alice", Left: 41 * time.Second}
	s.report(tb, "orders", "orders-1", 0, moving)
	s.report(tb, "orders", "orders-2", 0, incident.Record{})
	s.report(tb, "payments", "payments-1", 0, over)
	for n := range incident.MaxBehind {
		s.report(tb, "payments", fmt.Sprintf("payments-5d8c7b9f4-%05d", n), 0, incident.Record{})
	}
}

// Nothing is wider than the screen, and dark is dark.
func TestBrowserScreens(t *testing.T) {
	t.Parallel()
	s := busySite(t, func(c *web.Config) { c.Broker = broker{dead: 2} })
	s.trouble(t)
	srv := s.server(t)
	empty := newSite(t, func(c *web.Config) { c.Clusters = well{} })
	calm := empty.server(t)
	b := browse(t)
	for _, lang := range []string{"en", "zh"} {
		for _, width := range []int64{390, 820, 1440} {
			for _, dark := range []bool{false, true} {
				b.width(width, dark)
				look := fmt.Sprintf("%s-%d%s-", lang, width, map[bool]string{true: "-dark"}[dark])
				b.run(chromedp.Navigate(calm.URL + "/language?to=" + lang))
				b.until(fmt.Sprintf(`document.readyState === "complete" && document.documentElement.lang === %q && document.querySelector(".verdict.calm")`, lang))
				b.shot(look + "calm")
				for _, path := range append(pages, "/incidents/"+incidentID, "/events/0196f9c4-0000-7000-8000-000000000003") {
					b.run(chromedp.Navigate(srv.URL + path))
					b.until(fmt.Sprintf(`document.readyState === "complete" && document.documentElement.lang === %q`, lang))
					over := eval[[]string](b, `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
						.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, nav, pre, .hidden"))
						.map(e => e.tagName + "." + e.className).slice(0, 5).concat(["wider"])`)
					if len(over) > 0 {
						t.Errorf("%s at %d in %s: %v", path, width, lang, over)
					}
					b.shot(look + nameOf(path))
				}
				light := eval[float64](b, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((a, n) => a + +n, 0)`)
				if light < 380 != dark {
					t.Errorf("background %v, dark %t", light, dark)
				}
			}
		}
	}
	b.width(390, false)
	b.run(chromedp.Navigate(srv.URL + "/events"))
	b.until(`!document.querySelector("input[name=service]").checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})`)
	b.run(chromedp.Click(".filters summary"))
	b.until(`document.querySelector("input[name=service]").checkVisibility()`)
	b.shot("zh-390-filters")
	b.width(1440, false)
	b.run(chromedp.Navigate(srv.URL + "/events"))
	b.until(`document.querySelector("input[name=service]").checkVisibility() && !document.querySelector(".filters").open`)
}

func nameOf(path string) string {
	name, id, _ := strings.Cut(strings.Trim(path, "/"), "/")
	switch {
	case id != "":
		return "one-" + name
	case name == "":
		return "overview"
	}
	return name
}

// well is a Redis of which nothing is to be said.
type well struct{}

func (well) Clusters() []watch.Cluster {
	list := someClusters{}.Clusters()
	list[0].Nodes = list[0].Nodes[1:]
	return list
}

// What people with a keyboard, a screen reader or weak eyes need.
func TestBrowserAccessibility(t *testing.T) {
	s := busySite(t)
	srv := s.server(t)
	b := browse(t)
	for _, dark := range []bool{false, true} {
		b.width(1280, dark)
		for _, path := range append(pages, "/incidents/"+incidentID, "/events/0196f9c4-0000-7000-8000-000000000003") {
			b.run(chromedp.Navigate(srv.URL + path))
			b.until(`document.readyState === "complete"`)
			for _, p := range eval[[]string](b, accessibility) {
				t.Errorf("%s, dark %t: %s", path, dark, p)
			}
		}
	}
	b.run(chromedp.Navigate(srv.URL + "/events"))
	var order []string
	for range 12 {
		b.run(chromedp.KeyEvent("\t"))
		what := eval[string](b, `document.activeElement.className + "|" + (document.activeElement.getAttribute("href") || document.activeElement.name || "")`)
		order = append(order, what)
	}
	got := strings.Join(order, " ")
	if want := "skip|#main brand|/ |/ |/incidents |/events |/timeline |/clusters language|"; !strings.HasPrefix(got, want) {
		t.Errorf("focus goes %s, want %s...", got, want)
	}
	if !strings.Contains(got, " |service |key") {
		t.Errorf("focus goes %s, and does not reach the first filter", got)
	}
}

// accessibility returns what is wrong with a page: labels, names, headings,
// contrast (WCAG 2, AA).
const accessibility = `(() => {
  const bad = [];
  const name = (e) => e.tagName + "." + e.getAttribute("class") + " " + e.textContent.trim().slice(0, 40);
  if (!document.documentElement.lang) bad.push("no language");
  if (!document.title) bad.push("no title");
  if (document.querySelectorAll("h1").length !== 1 && !document.querySelector(".verdict h1")) bad.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) bad.push("not one main");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) bad.push("an id is there twice");
  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!e.labels.length) bad.push("no label: " + e.name);
  for (const e of document.querySelectorAll("a, button, summary"))
    if (!e.textContent.trim() && !e.getAttribute("aria-label")) bad.push("no name: " + e.outerHTML.slice(0, 80));
  for (const e of document.querySelectorAll("svg[role=img]")) if (!e.getAttribute("aria-label")) bad.push("a picture without words");
  for (const e of document.querySelectorAll("th")) if (!e.scope) bad.push("th without scope");
  for (const e of document.querySelectorAll("[role=region]"))
    if (!e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby")) bad.push("a region without a name");
  const rgb = (s) => { const n = s.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const lum = ([r, g, b]) => [r, g, b].map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; })
    .reduce((a, v, i) => a + v * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255]; };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let n; (n = texts.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || seen.has(e) || e.closest("noscript, script, title, .hidden") || !e.checkVisibility()) continue;
    seen.add(e);
    const a = lum(rgb(getComputedStyle(e).color)), b = lum(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push("contrast " + ratio.toFixed(2) + ": " + name(e));
  }
  if (seen.size < 10) bad.push("only " + seen.size + " texts looked at");
  return bad;
})()`
