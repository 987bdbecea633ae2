package web_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

type lettersOf struct{ broker string }

func (l lettersOf) Count(ctx context.Context) (int, error) { return deadletter.Count(ctx, l.broker) }

func (l lettersOf) List(ctx context.Context, limit int) ([]deadletter.Letter, int, error) {
	return deadletter.List(ctx, l.broker, limit)
}

func (l lettersOf) Replay(ctx context.Context, pick func(*deadletter.Letter) bool) (int, error) {
	return deadletter.Replay(ctx, l.broker, pick)
}

// A message that is no event and an event that was refused die; the page shows
// both, and replays the event.
func TestBrowserReplaysADeadLetter(t *testing.T) {
	broker := teststack.AMQP(t)
	s := newSite(t, withWrites, func(c *web.Config) { c.Every, c.Letters = 50*time.Millisecond, lettersOf{broker} })
	var well atomic.Bool
	s.receive(t, broker, func(notify.Event) error {
		if !well.Load() {
			return intake.ErrReject
		}
		return nil
	})
	ev := event("dead-1")
	ev.Key = "order:dead"
	if err := newPublisher(t, broker).Publish(t.Context(), ev); err != nil {
		t.Fatal(err)
	}
	send(t, broker, `{"no":"<b>event</b>"}`)
	testwait.Until(t, "two letters are dead", func() bool {
		n, err := deadletter.Count(t.Context(), broker)
		return err == nil && n == 2
	})
	well.Store(true)
	srv := s.server(t)
	b := browse(t)
	b.run(chromedp.Navigate(srv.URL + "/"))
	b.until(`document.querySelector("#dead")?.textContent === "2"`)
	b.run(chromedp.Click("#dead"))
	b.shows("2 of 2 dead letters")
	b.until(`document.querySelectorAll("article").length === 2 && document.querySelectorAll("article form").length === 1`)
	b.shot("letters")
	b.run(chromedp.SendKeys(`article form input[name=by]`, "Alice"), chromedp.Click("article form button"))
	b.shows("1 of 1 dead letters")
	b.until(`location.pathname === "/letters" && !document.querySelector("article form")`)
	b.run(chromedp.Navigate(srv.URL + "/events/dead-1"))
	b.shows("order:dead")
	b.run(chromedp.Navigate(srv.URL + "/silences"))
	b.shows("replay")
	b.shows("Alice (not authenticated)")
	b.run(chromedp.Navigate(srv.URL + "/"))
	b.until(`document.querySelector("#dead")?.textContent === "1"`)

	lines, err := s.store.AuditLines(t.Context(), 10)
	if err != nil || len(lines) != 1 || lines[0].Action != "replay" || lines[0].Who != "Alice (not authenticated)" || lines[0].Detail != "1 letters" {
		t.Errorf("audit lines %+v, %v", lines, err)
	}
	if w := s.do(t, "POST", "/letters/missing/replay", "by=Alice"); w.Code != 404 {
		t.Errorf("a letter that is not there: %d", w.Code)
	}
	letters, _, err := deadletter.List(t.Context(), broker, 10)
	if err != nil || len(letters) != 1 {
		t.Fatalf("letters %v, %v", letters, err)
	}
	if w := s.do(t, "POST", "/letters/"+letters[0].ID+"/replay", "by=Alice"); w.Code != 400 {
		t.Errorf("a letter that is no event: %d", w.Code)
	}
}

// send publishes a body as an event.
func send(tb testing.TB, broker, body string) {
	tb.Helper()
	conn, err := amqp.Dial(broker)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		tb.Fatal(err)
	}
	if err := ch.PublishWithContext(tb.Context(), rabbit.Exchange, "event.overlap", true, false,
		amqp.Publishing{Body: []byte(body)}); err != nil {
		tb.Fatal(err)
	}
}
