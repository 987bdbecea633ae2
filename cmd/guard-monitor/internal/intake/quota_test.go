package intake_test

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/notify"
)

// newLimited returns an Endpoint whose sender of orders may post 3 events at once, and 2
// a second.
func newLimited(t *testing.T) (*intake.Endpoint, *shelf) {
	t.Helper()
	s := &shelf{events: make(map[string][]byte)}
	e, err := intake.NewEndpoint(intake.EndpointConfig{
		Senders: []intake.Sender{
			{Name: "orders", Token: orders, Services: []string{"orders"}, EventsPerSecond: 2, Burst: 3},
			{Name: "payments", Token: all, Services: []string{"payments"}, EventsPerSecond: 2, Burst: 3},
		},
		Take: s.take, Heartbeat: s.hear, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

func payment(n int) notify.Event {
	ev := event(n)
	ev.Service = "payments"
	return ev
}

// TestSenderIsLimited: beyond its burst and rate a sender is asked to wait. Another one is
// not, and heartbeats of both arrive.
func TestSenderIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := newLimited(t)
		for n, want := range []int{202, 202, 202, 429, 429} {
			w, a := post(t, e, orders, encoded(t, event(n)))
			if w.Code != want || (w.Header().Get("Retry-After") == "1") != (want == 429) || a.Rejected {
				t.Errorf("event %d: answered %d %+v %v, want %d", n, w.Code, a, w.Header(), want)
			}
		}
		beat := encoded(t, heartbeat.Heartbeat{ID: "b", Service: "orders", At: time.Now(), Interval: time.Minute})
		if w, _ := post(t, e, orders, beat); w.Code != 202 {
			t.Errorf("a heartbeat of the limited sender: answered %d", w.Code)
		}
		if w, _ := post(t, e, all, encoded(t, payment(9))); w.Code != 202 {
			t.Errorf("the other sender: answered %d", w.Code)
		}
		if !e.Listening() || e.Err() != nil || !e.RejectedAt("orders").IsZero() {
			t.Errorf("listening %t, %v: no heartbeat was rejected, and the store is well", e.Listening(), e.Err())
		}
		if n := testmetric.Sum(t, e, "belay_ingest_limited_total", "sender", "orders"); n != 2 {
			t.Errorf("%v limited requests are counted, want 2", n)
		}
		<-time.After(time.Second)
		for n, want := range []int{202, 202, 429} {
			if w, _ := post(t, e, orders, encoded(t, event(10+n))); w.Code != want {
				t.Errorf("a second later, event %d: answered %d, want %d", n, w.Code, want)
			}
		}
		if len(s.events) != 6 || len(s.beats) != 1 {
			t.Errorf("stored %d events, heard %d heartbeats", len(s.events), len(s.beats))
		}
	})
}

// TestMessagesThatAreRejectedCount: a sender can't fill the log with what is no event.
func TestMessagesThatAreRejectedCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newLimited(t)
		for n, want := range []int{400, 400, 400, 429} {
			if w, _ := post(t, e, orders, []byte("{")); w.Code != want {
				t.Errorf("message %d: answered %d, want %d", n, w.Code, want)
			}
		}
	})
}

// TestLimitedHeartbeats: heartbeats have a limit of their own. One that is rejected says
// that its service lives, and nothing about the services of others.
func TestLimitedHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := newLimited(t)
		beat := encoded(t, heartbeat.Heartbeat{ID: "b", Service: "orders", At: time.Now(), Interval: time.Minute})
		for n, want := range []int{202, 202, 202, 429} {
			if w, _ := post(t, e, orders, beat); w.Code != want {
				t.Errorf("heartbeat %d: answered %d, want %d", n, w.Code, want)
			}
		}
		if !e.RejectedAt("orders").Equal(time.Now()) || !e.RejectedAt("payments").IsZero() || !e.Listening() {
			t.Errorf("rejected of orders %v, of payments %v, listening %t", e.RejectedAt("orders"), e.RejectedAt("payments"), e.Listening())
		}
		if w, _ := post(t, e, orders, encoded(t, event(1))); w.Code != 202 {
			t.Errorf("an event: answered %d", w.Code)
		}
		if len(s.beats) != 3 {
			t.Errorf("heard %d heartbeats", len(s.beats))
		}
	})
}

// TestSenderLeavesRoom: one sender can't occupy all requests that are taken at a time.
func TestSenderLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := newEndpoint(t)
		s.wait = make(chan struct{})
		var taken sync.WaitGroup
		for n := range 32 {
			taken.Go(func() { post(t, e, orders, encoded(t, event(n))) })
		}
		synctest.Wait()
		if w, _ := post(t, e, orders, encoded(t, event(32))); w.Code != 429 {
			t.Errorf("the sender that has half of them: answered %d", w.Code)
		}
		// It may have been a heartbeat of this sender's services, and of no other.
		if !e.Listening() || e.RejectedAt("orders-worker").IsZero() || !e.RejectedAt("payments").IsZero() {
			t.Errorf("listening %t, rejected of orders-worker %v, of payments %v", e.Listening(), e.RejectedAt("orders-worker"), e.RejectedAt("payments"))
		}
		other := make(chan int)
		go func() {
			w, _ := post(t, e, all, encoded(t, payment(33)))
			other <- w.Code
		}()
		synctest.Wait()
		close(s.wait)
		if code := <-other; code != 202 {
			t.Errorf("the other sender: answered %d", code)
		}
		taken.Wait()
	})
}
