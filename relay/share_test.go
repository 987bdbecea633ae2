package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// topic is the nth message of a key, with a topic.
func topic(topic, key string, n int) message.Row {
	r := row(key, n)
	r.Topic = topic
	return r
}

// More messages than a relay has in hand, whose destination is away, leave room for other routes.
// They are sent, each once and in order, when it is back.
func TestOutageOfOneRoute(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		const keys, each = 60, 40
		var away, other recorder
		away.failWith(func(relay.Message) error { return relay.ErrUnavailable })
		for n := range each {
			var rows []message.Row
			for k := range keys {
				rows = append(rows, topic("away", fmt.Sprintf("away:%d", k), n))
			}
			store(t, db, rows...)
		}
		start(t, db, relay.WithPause(relay.Quick(relay.Config{Routes: []relay.Route{{Topic: "away", To: &away}, {Topic: relay.Others, To: &other}}}), time.Hour))
		testwait.Until(t, "the destination is tried", func() bool { return len(away.tries()) > 0 })
		for n := range 20 {
			store(t, db, row(fmt.Sprintf("other:%d", n), 0))
			testwait.Until(t, "the other route's message is sent", func() bool { return len(other.ids()) == n+1 })
		}
		for _, w := range list(t, db) {
			if w.Attempts != 0 || w.Dead {
				t.Errorf("the outage counts: %+v", w)
			}
		}
		away.failWith(nil)
		emptied(t, db)
		for k := range keys {
			key := fmt.Sprintf("away:%d", k)
			if got := of(away.ids(), key); !slices.Equal(got, idsOf(key, each)) {
				t.Errorf("sent: %v", got)
			}
		}
	})
}

// A route whose calls hang keeps no other one waiting.
func TestHangingRoute(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	for k := range 300 {
		store(t, db, topic("hangs", fmt.Sprint(k), 0))
	}
	end := make(chan struct{})
	defer close(end)
	var other recorder
	start(t, db, relay.Quick(relay.Config{Routes: []relay.Route{
		{Topic: "hangs", Until: time.Hour, Handle: func(context.Context, relay.Message) error { <-end; return nil }},
		{Topic: relay.Others, To: &other},
	}}))
	for n := range 20 {
		store(t, db, row("other", n))
		testwait.Until(t, "the other route's message is sent", func() bool { return len(other.ids()) == n+1 })
	}
}

// Whatever is refused, retried and dropped meanwhile: the messages of a key that are sent are sent in
// their order.
func TestOrderOfDecisions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		const keys, each = 8, 60
		var r recorder
		r.failWith(func(relay.Message) error {
			switch rand.IntN(12) {
			case 0:
				return errors.New("no")
			case 1:
				return relay.ErrRejected
			}
			return nil
		})
		cfg := relay.WithLease(relay.WithSlowReads(to(&r)), 20*time.Second)
		start(t, db, cfg)
		start(t, db, cfg)
		dropped := make(map[string]bool)
		decide := func() {
			for _, w := range list(t, db) {
				if !w.Dead {
					continue
				}
				if rand.IntN(2) == 0 {
					testdb.WantNil(t, relay.Retry(bg, db, w))
				} else {
					testdb.WantNil(t, relay.Drop(bg, db, w.ID))
					dropped[w.ID] = true
				}
			}
		}
		for n := range each {
			var rows []message.Row
			for k := range keys {
				rows = append(rows, row(fmt.Sprint(k), n))
			}
			store(t, db, rows...)
			decide()
		}
		testwait.Gone(t, "messages", func() int { decide(); return count(t, db, "belay_message") })
		for k := range keys {
			key := fmt.Sprint(k)
			want := slices.DeleteFunc(idsOf(key, each), func(id string) bool { return dropped[id] })
			if got := of(r.ids(), key); !slices.Equal(got, want) {
				t.Errorf("sent %v, want %v", got, want)
			}
		}
	})
}

// The messages of keys that are tried again and again are not overtaken.
func TestOrderOfRetries(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		const keys, each = 40, 40
		var r recorder
		r.failWith(func(relay.Message) error {
			if rand.IntN(10) < 4 {
				return errors.New("no")
			}
			return nil
		})
		for n := range each {
			var rows []message.Row
			for k := range keys {
				rows = append(rows, row(fmt.Sprint(k), n))
			}
			store(t, db, rows...)
		}
		start(t, db, relay.WithPause(to(&r), 100*time.Millisecond))
		emptied(t, db)
		for k := range keys {
			if got := of(r.ids(), fmt.Sprint(k)); !slices.Equal(got, idsOf(fmt.Sprint(k), each)) {
				t.Errorf("sent %v", got)
			}
		}
	})
}

// More failures at once than a statement takes do not keep other messages.
func TestManyFailures(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		no := publish(func(relay.Message) error { return errors.New("no") })
		var routes []relay.Route
		var rows []message.Row
		for n := range 4 {
			routes = append(routes, relay.Route{Topic: fmt.Sprint(n), To: no})
			for k := range 300 {
				rows = append(rows, topic(fmt.Sprint(n), fmt.Sprint(n, "-", k), 0))
			}
		}
		store(t, db, rows...)
		var other recorder
		start(t, db, relay.WithPause(relay.Quick(relay.Config{Routes: append(routes, relay.Route{Topic: relay.Others, To: &other})}), time.Hour))
		testwait.Gone(t, "messages that have not failed", func() int { return len(rows) - count(t, db, "belay_parked") })
		store(t, db, row("other", 0))
		testwait.Until(t, "the other one is sent", func() bool { return len(other.ids()) == 1 })
	})
}

// A call that ignores its context does not keep the lanes of a relay that was closed.
func TestCloseBesideHungCall(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	hang, called := make(chan struct{}), make(chan struct{})
	defer close(hang)
	first := start(t, db, relay.WithLease(to(publish(func(relay.Message) error {
		close(called)
		<-hang
		return nil
	})), time.Hour))
	store(t, db, row("a", 0))
	<-called
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := first.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	var r recorder
	start(t, db, relay.WithLease(to(&r), time.Hour))
	emptied(t, db)
	if got := r.ids(); !slices.Equal(got, idsOf("a", 1)) {
		t.Errorf("sent %v", got)
	}
}

// Keys whose messages go two ways do not lend the couriers of one to the other.
func TestHangingRouteInEachKey(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	for k := range 300 {
		store(t, db, row(fmt.Sprint(k), 0), topic("hangs", fmt.Sprint(k), 1))
	}
	end := make(chan struct{})
	defer close(end)
	var other recorder
	start(t, db, relay.Quick(relay.Config{Routes: []relay.Route{
		{Topic: "hangs", Until: time.Hour, Handle: func(context.Context, relay.Message) error { <-end; return nil }},
		{Topic: relay.Others, To: &other},
	}}))
	testwait.Until(t, "the other route's messages are sent", func() bool { return len(other.ids()) == 300 })
}

// A message at which its destination breaks is listed, and the others are sent.
func TestMessageIsTheOutage(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var r recorder
	r.failWith(func(m relay.Message) error {
		if m.ID == "bad/0" {
			return relay.ErrUnavailable
		}
		return nil
	})
	start(t, db, to(&r))
	store(t, db, row("bad", 0))
	n := 0
	testwait.Until(t, "the message is listed", func() bool {
		store(t, db, row("sound", n))
		n++
		return len(list(t, db)) == 1 && list(t, db)[0].Attempts > 0
	})
	testwait.Until(t, "the others are sent", func() bool { return len(r.ids()) == n })
}
