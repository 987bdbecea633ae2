package web_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/belaygo/belay/internal/monitor/deadletter"
	"github.com/belaygo/belay/internal/monitor/incident"
	"github.com/belaygo/belay/internal/monitor/watch"
	"github.com/belaygo/belay/internal/monitor/web"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

// patience bounds every wait; it is reached only when something is broken.
const patience = time.Minute

// tab is a page of a real browser.
type tab struct {
	tb  testing.TB
	ctx context.Context
}

// browse opens an empty tab of a browser of its own, or skips aloud.
func browse(tb testing.TB) *tab {
	tb.Helper()
	path := teststack.Program(tb, "chromium", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("lang", "en-US"), chromedp.WSURLReadTimeout(patience))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	tb.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end
		cancel()
		end()
	})
	t := &tab{tb, ctx}
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as the first context it runs in
		tb.Fatalf("start chromium: %v", err)
	}
	return t
}

func (t *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.tb.Fatal(err)
	}
}

// eval returns the value of a JavaScript expression.
func eval[T any](t *tab, js string) T {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		t.tb.Fatal(err)
	}
	return v
}

// until waits until a JavaScript expression is true.
func (t *tab) until(js string) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		// An error is not the end: the page may be about to change.
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+js+")"))
		if err == nil && is {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.tb.Fatalf("not true: %s: %v\n%.2000s", js, err, eval[string](t, "document.body.innerText"))
		}
	}
}

// hurry has the script of the pages do at once what it does every so often. It
// counts that in ticks.
func (t *tab) hurry() {
	t.tb.Helper()
	if _, err := chromedp.Call(t.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{
			const every = setInterval;
			window.ticks = 0;
			window.setInterval = (f) => every(() => { window.ticks++; f(); }, 50);
		}`,
	}); err != nil {
		t.tb.Fatal(err)
	}
}

func (t *tab) shows(text string) {
	t.tb.Helper()
	t.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// shot keeps a picture for people, outside the repository.
func (t *tab) shot(name string) {
	t.tb.Helper()
	dir := os.Getenv("BELAY_WEB_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(t.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.tb.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		t.tb.Fatal(err)
	}
}

func (t *tab) width(px int64, dark bool) {
	t.tb.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	t.run(chromedp.EmulateViewport(px, 900))
	if _, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		t.tb.Fatal(err)
	}
}

// busySite has something on every page.
func busySite(tb testing.TB, change ...func(*web.Config)) *site {
	tb.Helper()
	s := newSite(tb, append(change, withWrites, func(c *web.Config) {
		c.Every, c.Clusters = 50*time.Millisecond, someClusters{}
	})...)
	for i := range 12 {
		ev := event(fmt.Sprintf("0196f9c4-0000-7000-8000-0000000000%02d", i))
		ev.Key, ev.CaughtAt = fmt.Sprintf("order:%d", i), time.Now().Add(-time.Duration(12-i)*time.Minute)
		if i%4 == 3 {
			ev.Verdict, ev.Service = notify.Lost, "payments"
		}
		s.add(tb, ev)
	}
	s.explain(tb)
	s.failover(tb, time.Now().Add(-12*time.Minute))
	err := s.store.AddHeartbeat(tb.Context(), incident.Heartbeat{Service: "orders", Instance: "orders-1", At: time.Now(), Every: 10 * time.Second, ReceivedAt: time.Now()})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

type someClusters struct{}

func (someClusters) Clusters() []watch.Cluster {
	now := time.Now()
	node := func(addr, role, master string, up bool) watch.Node {
		n := watch.Node{
			Addr: addr, Role: role, Master: master, Up: up, LinkUp: up, Epoch: 7, Keys: 1234, Version: "7.2.4",
			SeenAt: now, Took: 420 * time.Microsecond, Policy: "noeviction",
		}
		if !up {
			n.DownAt = now.Add(-12 * time.Minute)
		}
		return n
	}
	return []watch.Cluster{{
		Name: "main", Mode: watch.Clustered, Since: now.Add(-time.Hour), SeenAt: now,
		Shards: []watch.Shard{
			{Name: "0-5460", Master: "127.0.0.1:7004", Slots: 5461, Epoch: 7},
			{Name: "5461-10922", Master: "127.0.0.1:7002", Replicas: []string{"127.0.0.1:7005"}, Slots: 5462, Epoch: 2},
		},
		Nodes: []watch.Node{
			node("127.0.0.1:7001", "master", "", false), node("127.0.0.1:7002", "master", "", true),
			node("127.0.0.1:7004", "master", "", true), node("127.0.0.1:7005", "replica", "127.0.0.1:7002", true),
		},
	}}
}

// An event that is published to RabbitMQ appears on the open page, which is not
// loaded again.
func TestBrowserShowsWhatIsPublished(t *testing.T) {
	broker := teststack.AMQP(t)
	s := newSite(t, func(c *web.Config) { c.Every = 50 * time.Millisecond })
	s.receive(t, broker, anything)
	publisher := newPublisher(t, broker)
	srv := s.server(t)

	b := browse(t)
	b.run(chromedp.Navigate(srv.URL + "/events"))
	b.shows("No event yet")
	b.until(`document.getElementById("live").classList.contains("on")`)
	b.until(`window.marked = 42`)
	ev := event("published-1")
	ev.Key = "order:published"
	publish := func(ev notify.Event) {
		t.Helper()
		late := time.Now().Add(patience)
		for {
			err := publisher.Publish(t.Context(), ev)
			if err == nil {
				return
			}
			if time.Now().After(late) {
				t.Fatal(err)
			}
		}
	}
	publish(ev)
	b.shows("order:published")
	b.until(`window.marked === 42`)

	// Who reads further down keeps their place, and is told.
	for i := range 40 {
		s.add(t, event(fmt.Sprintf("more-%d", i)))
	}
	b.until(`document.querySelectorAll("#list tbody tr").length > 40`)
	b.until(`(window.scrollTo({top: document.body.scrollHeight, behavior: "instant"}), window.scrollY > 300)`)
	ev = event("published-2")
	ev.Key = "order:later"
	publish(ev)
	b.until(`!document.getElementById("more").hidden`)
	b.until(`window.scrollY > 300 && !document.body.innerText.includes("order:later")`)
	b.run(chromedp.Click("#more"))
	b.shows("order:later")
	if eval[string](b, `document.getElementById("asof").textContent`) == "" {
		t.Error("what was up to date already is empty now")
	}
	b.until(`window.marked === 42`)
}

func TestBrowserActs(t *testing.T) {
	s := busySite(t)
	srv := s.server(t)
	b := browse(t)
	b.run(chromedp.Navigate(srv.URL+"/"), chromedp.Click("#open article a"))
	b.shows("Nobody is on it yet")
	b.run(chromedp.SendKeys(`#actions form[action$="/ack"] input[name=by]`, "Alice"), chromedp.Click(`#actions form[action$="/ack"] button`))
	b.until(`document.querySelector('#actions form[action$="/unack"]')`) // the new page, not the old one brought up to date
	b.shows("Alice is on it")
	b.run(chromedp.Click("summary"))
	before := eval[string](b, `document.getElementById("asof").innerText`)
	s.add(t, event("another"))
	b.until(fmt.Sprintf(`document.getElementById("asof").innerText !== %q`, before))
	b.until(`document.getElementById("more").hidden`) // what the reader opened is not new
	b.run(chromedp.SendKeys(`input[name=comment]`, "deploy"), chromedp.SendKeys(`#silence input[name=by]`, "Alice"),
		chromedp.Click("#silence button"))
	b.shows("silenced")
	b.run(chromedp.Navigate(srv.URL + "/silences"))
	b.shows("Alice (not authenticated)")

	b.run(chromedp.Navigate(srv.URL+"/events"), chromedp.Click(".filters summary"), chromedp.SetValue(`select[name=verdict]`, "lost"), chromedp.Click(".filter button"))
	b.until(`location.search.includes("verdict=lost") && document.querySelectorAll("tbody tr").length === 3`)
	b.run(chromedp.Click(".language"))
	b.shows("锁丢失")
	b.until(`location.search.includes("verdict=lost") && document.documentElement.lang === "zh"`)
	b.shot("zh-events-1280")
	b.run(chromedp.Click(`nav a[href="/"]`))
	b.shows("个未结事故")
	b.shot("zh-overview-1280")
}

func TestBrowserHostileText(t *testing.T) {
	s := newSite(t)
	const script = `"><img src=x onerror="window.broken=1"><script>window.broken=1</script>` + "\u202e\x1b[2J"
	ev := event("hostile")
	ev.Key, ev.Service, ev.Table = script, script, script
	s.add(t, ev)
	s.explain(t, func(i *incident.Incident) { i.Service, i.Evidence[0].Text = script, script })
	srv := s.server(t)
	b := browse(t)
	for _, path := range append(pages, "/incidents/"+incidentID, "/events/hostile") {
		b.run(chromedp.Navigate(srv.URL + path))
		b.until(`document.readyState === "complete" && window.broken === undefined && !document.querySelector("main img, main script")`)
	}
	b.shows(`\x1b[2J`)
	b.shows(`<script>window.broken=1</script>`)
}

func TestBrowserAuthentication(t *testing.T) {
	s := busySite(t, func(c *web.Config) { c.Auth = newAuth(t) })
	srv := s.server(t)
	b := browse(t)
	res, err := chromedp.RunResponse(b.ctx, chromedp.Navigate(srv.URL+"/"))
	if err == nil && res != nil && res.Status != 401 {
		t.Errorf("without authentication: %d", res.Status)
	}
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
		Headers: network.Headers{"Authorization": "Bearer " + token},
	}); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Navigate(srv.URL + "/"))
	b.shows("1 open incident")
	b.until(`document.getElementById("live").classList.contains("on")`)
}

// trouble adds to what a busySite has: an incident that somebody looks after, and
// one whose outcome nobody knows.
func (s *site) trouble(tb testing.TB) {
	tb.Helper()
	now := time.Now()
	s.explain(tb, func(i *incident.Incident) {
		i.Evidence = []incident.Evidence{
			{At: now.Add(-12 * time.Minute), Node: "orders-1", Text: `two callers wrote under key "order:1" at once, and the database refused this one; granted at 02:49:55.402 UTC ` +
				`by 127.0.0.1:7001 (slot 42) for 30s, 5.687s before the event; it was gone, or another's, before its time was up; at the conflict nobody had the key`},
			{At: now.Add(-12 * time.Minute), Node: "127.0.0.1:7001", Numbers: map[string]int64{"refused": 1},
				Text: "127.0.0.1:7001, a master, refuses connections: no process listens there, seen 4.15s before the event"},
			{At: now.Add(-12 * time.Minute), Node: "127.0.0.1:7004", Numbers: map[string]int64{"lost_at_least": 120, "new_epoch": 7, "old_epoch": 1},
				Text: "127.0.0.1:7004 took over the slots 0-5460 from 127.0.0.1:7001 (config epoch 7, before 1); the old master was last seen at replication offset 220, " +
					"the new one's history begins at 100: at least 120 bytes lost, seen 142ms before the event"},
		}
	})
	ev := event("0196f9c4-0000-7000-8000-000000000099")
	ev.Verdict, ev.Outcome, ev.Service, ev.Key, ev.Count, ev.CaughtAt = notify.UnknownCommit, notify.Unknown, "payments", "pay:77120", 1, now.Add(-3*time.Minute)
	s.add(tb, ev)
	s.explain(tb, func(i *incident.Incident) {
		i.ID, i.Key, i.Service, i.Cause, i.Confidence, i.State = incidentID[:35]+"b", "u", "payments", incident.Unknown, incident.Low, incident.New
		i.Cluster, i.Shard, i.FirstAt, i.DocLink = "", "", now.Add(-3*time.Minute), incident.DocLink(incident.Unknown)
		i.NextStep = "Look at the database and the network to it at that time, and check the row of this key by hand."
		i.Evidence = []incident.Evidence{{At: now.Add(-3 * time.Minute), Node: "payments-2",
			Text: `the database did not answer the COMMIT of key "pay:77120", so nobody knows whether it took effect; that the lock failed is not known`}}
	})
	if err := s.store.Acknowledge(tb.Context(), incidentID, "alice", now.Add(-2*time.Minute)); err != nil {
		tb.Fatal(err)
	}
}

// Nothing is wider than the screen, and dark is dark.
func TestBrowserScreens(t *testing.T) {
	s := busySite(t, func(c *web.Config) { c.Letters = fewLetters{} })
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

// fewLetters are dead letters without a broker.
type fewLetters struct{}

func (fewLetters) Count(context.Context) (int, error) { return 2, nil }

func (fewLetters) List(context.Context, int) ([]deadletter.Letter, int, error) {
	dead := deadletter.Letter{ID: "d62cd2032d5d", Reason: "rejected", RoutingKey: "event.overlap", Died: time.Now().Add(-time.Hour), Size: 561, Body: []byte(`{"id":"1"}`), Event: event("1")}
	bad := deadletter.Letter{ID: "5e7625ddc58b", Reason: "rejected", RoutingKey: "event.overlap", Died: time.Now().Add(-2 * time.Hour), Size: 21, Body: []byte(`{"no":"event"}`)}
	bad.Err = bad.Event.UnmarshalJSON(bad.Body)
	return []deadletter.Letter{dead, bad}, 2, nil
}

func (fewLetters) Replay(context.Context, func(*deadletter.Letter) bool) (int, error) { return 0, nil }

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
	if want := "skip|#main brand|/ |/ |/incidents |/events |/timeline |/clusters |/silences |/letters language|"; !strings.HasPrefix(got, want) {
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

func TestBrowserSaysWhenItIsNotLive(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Every = 50 * time.Millisecond })
	srv := s.server(t)
	b := browse(t)
	b.run(chromedp.Navigate(srv.URL + "/"))
	b.until(`document.getElementById("live").classList.contains("on")`)
	if got := eval[string](b, `document.getElementById("live").textContent`); got != "live" {
		t.Errorf("badge %q", got)
	}
	srv.Listener.Close()
	srv.CloseClientConnections()
	b.shows("Not live since")
}

// A browser gives a live connection up that was answered with an error, as by a
// proxy whose server starts again, or when there are too many.
func TestBrowserIsLiveAgain(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Every = 50 * time.Millisecond })
	var full, failing atomic.Bool
	full.Store(true)
	srv := s.behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live" && full.Load() || r.URL.Path == "/events" && failing.Load() {
			http.Error(w, "not now", http.StatusBadGateway)
			return
		}
		s.ServeHTTP(w, r)
	}))
	const live = `document.getElementById("live").textContent === "live"`
	b := browse(t)
	b.hurry()
	b.run(chromedp.Navigate(srv.URL + "/events"))
	b.shows("Not live since")
	full.Store(false)
	b.until(live)

	// The page is not fetched once, though the connection is well.
	failing.Store(true)
	b.shows("Not live since")
	failing.Store(false)
	b.until(live)
}
