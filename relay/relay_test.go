package relay_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// A message arrives as it was sent, and is deleted.
func TestMessageArrivesWhole(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		sent := message.Row{MessageID: "1", Key: "order:中国", Topic: "sale.made", Headers: map[string]string{"a": "é"}, Body: []byte("\x00\xff")}
		arrived := make(chan relay.Message, 10)
		start(t, db, relay.Quick(relay.Config{Routes: []relay.Route{{Topic: "sale.made", Until: time.Hour, Handle: func(_ context.Context, m relay.Message) error {
			arrived <- m
			return nil
		}}}}))
		store(t, db, sent)
		m := <-arrived
		if m.ID != sent.MessageID || m.Key != sent.Key || m.Topic != sent.Topic || string(m.Body) != string(sent.Body) ||
			!reflect.DeepEqual(m.Headers, sent.Headers) || m.Attempts != 0 || time.Since(m.Time).Abs() > time.Hour {
			t.Errorf("arrived: %+v", m)
		}
		emptied(t, db)
	})
}

// The messages of a key arrive in their order, once each.
func TestOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		const keys, each = 20, 30
		var r recorder
		for n := range each {
			var rows []message.Row
			for k := range keys {
				rows = append(rows, row(fmt.Sprintf("item:%d", k), n))
			}
			store(t, db, rows...)
		}
		start(t, db, to(&r))
		emptied(t, db)
		for k := range keys {
			key := fmt.Sprintf("item:%d", k)
			if got := of(r.ids(), key); !slices.Equal(got, idsOf(key, each)) {
				t.Errorf("key %s: %v", key, got)
			}
		}
	})
}

// One message of a key is under way at a time, and those of different keys are together.
func TestOneUnderWayForEachKey(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var now, most [2]atomic.Int64
	var both atomic.Bool
	start(t, db, to(publish(func(m relay.Message) error {
		n := int(m.Key[len(m.Key)-1] - '0')
		most[n].Store(max(most[n].Load(), now[n].Add(1)))
		testwait.Until(t, "the other key's message is under way", func() bool { return both.Load() || now[1-n].Load() > 0 })
		both.Store(true)
		now[n].Add(-1)
		return nil
	})))
	store(t, db, append(rowsOf("item:0", 20), rowsOf("item:1", 20)...)...)
	emptied(t, db)
	if most[0].Load() != 1 || most[1].Load() != 1 {
		t.Errorf("under way at a time: %d and %d", most[0].Load(), most[1].Load())
	}
}

// A message that is not accepted is not overtaken by those of its key. Other keys go on.
func TestPoisonIsNotOvertaken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		var r recorder
		poison := errors.New("poison")
		r.failWith(func(m relay.Message) error {
			if m.ID == "bad/2" {
				return poison
			}
			return nil
		})
		start(t, db, to(&r))
		store(t, db, append(rowsOf("bad", 10), rowsOf("good", 10)...)...)
		testwait.Until(t, "the other key is sent, and the poison tried again", func() bool {
			return len(of(r.ids(), "good")) == 10 && strings.Count(strings.Join(r.tries(), " "), "bad/2") > 5
		})
		if got := of(r.ids(), "bad"); !slices.Equal(got, idsOf("bad", 2)) {
			t.Errorf("sent before the poison: %v", got)
		}
		r.failWith(nil)
		emptied(t, db)
		if got := of(r.ids(), "bad"); !slices.Equal(got, idsOf("bad", 10)) {
			t.Errorf("sent: %v", got)
		}
		testwait.Until(t, "no key is parked", func() bool { return count(t, db, "belay_parked") == 0 })
	})
}

// While the destination is unavailable nothing counts against the messages, and nothing is lost.
func TestOutage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		var r recorder
		r.failWith(func(relay.Message) error { return fmt.Errorf("%w: no route to host", relay.ErrUnavailable) })
		start(t, db, to(&r))
		store(t, db, append(rowsOf("a", 20), rowsOf("b", 20)...)...)
		testwait.Until(t, "the destination is tried again", func() bool { return len(r.tries()) > 4 })
		if n := count(t, db, "belay_parked"); n != 0 || len(r.ids()) != 0 {
			t.Errorf("in the outage %d keys are parked, and sent is %v", n, r.ids())
		}
		r.failWith(nil)
		emptied(t, db)
		for _, key := range []string{"a", "b"} {
			if got := of(r.ids(), key); !slices.Equal(got, idsOf(key, 20)) {
				t.Errorf("sent: %v", got)
			}
		}
	})
}

// A panic is an error: the message is tried again.
func TestPanic(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var n atomic.Int64
	start(t, db, to(publish(func(m relay.Message) error {
		if n.Add(1) < 3 {
			panic("a handler")
		}
		if m.Attempts != 2 {
			t.Errorf("attempts: %d", m.Attempts)
		}
		return nil
	})))
	store(t, db, row("a", 0))
	emptied(t, db)
}

// A message whose topic has no route waits for a relay that has one.
func TestNoRoute(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var r recorder
	old := start(t, db, relay.Quick(relay.Config{Routes: []relay.Route{{Topic: "other", To: &r}}}))
	store(t, db, rowsOf("a", 2)...)
	testwait.Until(t, "the key is parked", func() bool { return count(t, db, "belay_parked") == 1 })
	if err := old.Close(bg); err != nil {
		t.Fatal(err)
	}
	if err := db.Exec("UPDATE belay_parked SET retry_at = 0").Error; err != nil {
		t.Fatal(err)
	}
	start(t, db, to(&r))
	emptied(t, db)
	if got := r.ids(); !slices.Equal(got, idsOf("a", 2)) {
		t.Errorf("sent: %v", got)
	}
}

// After Until a message is a dead letter, and is never sent again.
func TestUntil(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		var calls atomic.Int64
		cfg := relay.Quick(relay.Config{Routes: []relay.Route{{Topic: "sale", Until: time.Hour, Handle: func(context.Context, relay.Message) error {
			calls.Add(1)
			return errors.New("no")
		}}}})
		start(t, db, cfg)
		store(t, db, rowsOf("a", 2)...)
		testwait.Until(t, "it was called", func() bool { return calls.Load() > 1 })
		if err := db.Exec("UPDATE belay_message SET created_at = created_at - 3600000").Error; err != nil {
			t.Fatal(err)
		}
		dead := func() (n int) {
			if err := db.Raw("SELECT COUNT(*) FROM belay_parked WHERE dead = 2").Scan(&n).Error; err != nil {
				t.Fatal(err)
			}
			return n
		}
		testwait.Until(t, "the message is a dead letter", func() bool { return dead() == 1 })
		before := calls.Load()
		if err := db.Exec("UPDATE belay_parked SET retry_at = 0").Error; err != nil {
			t.Fatal(err)
		}
		store(t, db, row("b", 0)) // reads go on
		testwait.Until(t, "another key's message is called", func() bool { return calls.Load() > before+3 })
		if count(t, db, "belay_message") != 3 || dead() != 1 {
			t.Error("the dead letter is gone")
		}
	})
}

// Until also ends while the row is in hand, since the destination is unavailable.
func TestUntilInHand(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var r recorder
	r.failWith(func(relay.Message) error { return relay.ErrUnavailable })
	cfg := to(&r)
	cfg.Routes[0].Until = 2 * time.Second
	start(t, db, cfg)
	tries := func(key string) int { return len(of(r.tries(), key)) }
	died := func(n int) {
		t.Helper()
		store(t, db, row(fmt.Sprint(n), 0))
		testwait.Until(t, "the message is a dead letter", func() bool { return count(t, db, "belay_parked") == n+1 })
	}
	n := 0
	for died(n); tries(fmt.Sprint(n)) == 0; died(n) { // a machine that is busy for so long
		n++
	}
	before := tries(fmt.Sprint(n))
	died(n + 1)
	if after := tries(fmt.Sprint(n)); after != before {
		t.Errorf("after its time the message was called %d times", after-before)
	}
}

// A call that takes longer than a lease keeps its lane.
func TestLeaseIsRenewedDuringCall(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var r recorder
	gate := make(chan struct{})
	r.failWith(func(m relay.Message) error {
		if m.ID == "a/0" {
			<-gate
		}
		return nil
	})
	cfg := relay.WithLease(to(&r), 5*time.Second)
	start(t, db, cfg)
	store(t, db, rowsOf("a", 3)...)
	testwait.Until(t, "the call has begun", func() bool { return len(r.tries()) == 1 })
	start(t, db, cfg)
	terms := func() (n int) {
		if err := db.Raw("SELECT MIN(term) FROM belay_lane WHERE lane = ?", message.Lane("a")).Scan(&n).Error; err != nil {
			t.Fatal(err)
		}
		return n
	}
	from := terms()
	testwait.Until(t, "more than a lease has passed", func() bool { return terms() > from+8 })
	if got := r.tries(); !slices.Equal(got, idsOf("a", 1)) {
		t.Errorf("tries: %v", got)
	}
	close(gate)
	emptied(t, db)
	if got := r.tries(); !slices.Equal(got, idsOf("a", 3)) {
		t.Errorf("tries: %v", got)
	}
}

// Close waits for calls under way, and the lanes are free at once.
func TestClose(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		var r recorder
		gate := make(chan struct{})
		r.failWith(func(relay.Message) error { <-gate; return nil })
		first := start(t, db, relay.WithLease(to(&r), time.Hour))
		store(t, db, rowsOf("a", 3)...)
		testwait.Until(t, "a call has begun", func() bool { return len(r.tries()) == 1 })
		ended := make(chan error)
		go func() { ended <- first.Close(bg) }()
		close(gate)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		start(t, db, relay.WithLease(to(&r), time.Hour))
		emptied(t, db)
		if got := r.tries(); !slices.Equal(got, idsOf("a", 3)) {
			t.Errorf("tries: %v", got)
		}
	})
}

// Close ends with its context, and cancels the calls under way.
func TestCloseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	began := make(chan struct{})
	r := start(t, db, relay.Quick(relay.Config{Routes: []relay.Route{{Topic: "sale", Until: time.Hour, Handle: func(ctx context.Context, _ relay.Message) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}}}}))
	store(t, db, row("a", 0))
	<-began
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := r.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	if err := r.Close(bg); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if count(t, db, "belay_message") != 1 || count(t, db, "belay_parked") != 0 {
		t.Error("a call that Close has ended counts against its message")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	var p recorder
	handle := func(context.Context, relay.Message) error { return nil }
	for what, routes := range map[string][]relay.Route{
		"no routes":       nil,
		"no topic":        {{To: &p}},
		"no way out":      {{Topic: "a"}},
		"two ways out":    {{Topic: "a", To: &p, Handle: handle, Until: 1}},
		"no Until":        {{Topic: "a", Handle: handle}},
		"negative":        {{Topic: "a", To: &p, Until: -1}},
		"one topic twice": {{Topic: "a", To: &p}, {Topic: "a", To: &p}},
	} {
		if r, err := relay.New(db, relay.Config{Routes: routes}); err == nil {
			r.Close(bg)
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := relay.New(nil, to(&p)); err == nil {
		t.Error("no error without a database")
	}
}

// publish is a Publisher.
type publish func(relay.Message) error

func (p publish) Publish(_ context.Context, m relay.Message) error { return p(m) }
