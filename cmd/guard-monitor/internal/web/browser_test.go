package web_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

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
			ev.Verdict, ev.Service = notify.VerdictLost, "payments"
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
	t.Parallel()
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
	t.Parallel()
	s := busySite(t)
	srv := s.server(t)
	b := browse(t)
	b.run(chromedp.Navigate(srv.URL+"/"), chromedp.Click("#open article a"))
	b.until(`document.readyState === "complete" && location.pathname.startsWith("/incidents/")`)
	b.shows("Nobody is on it yet")
	b.run(chromedp.SendKeys(`#actions form[action$="/ack"] input[name=by]`, "Alice"), chromedp.Click(`#actions form[action$="/ack"] button`))
	b.until(`document.querySelector('#actions form[action$="/unack"]')`) // the new page, not the old one brought up to date
	b.shows("Alice is on it")
	if lines, err := s.store.AuditLines(t.Context(), store.Page{Limit: 1}); err != nil || len(lines) != 1 || lines[0].Who != "Alice (not authenticated)" {
		t.Errorf("audit lines %+v, %v", lines, err)
	}

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
	s.explain(t, func(i *incident.Incident) {
		i.Service, i.Evidence = script, []incident.Evidence{{Kind: incident.Sentence, Stored: script}}
	})
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
		Headers: network.Headers{"Authorization": basicAlice},
	}); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Navigate(srv.URL + "/"))
	b.shows("1 open incident")
	b.until(`document.getElementById("live").classList.contains("on")`)
}

func TestBrowserSaysWhenItIsNotLive(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
