package outbox_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// A record is what a process knows of a switch.
type record struct {
	mu  sync.Mutex
	now outbox.Switch
}

func (r *record) set(s outbox.Switch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = s
}

func (r *record) get() outbox.Switch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// answerWith has the next heartbeats fail, or no longer.
func (b *beating) answerWith(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// switches are the switches of all heartbeats.
func (b *beating) switches() (list []heartbeat.Switch) {
	for _, h := range b.all() {
		list = append(list, h.Switch)
	}
	return list
}

// TestHeartbeatTellsOfASwitchAtOnce: a switch is over before the next heartbeat is due.
func TestHeartbeatTellsOfASwitchAtOnce(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	var known record
	open(t, db, outbox.Config{Relay: &relay, Service: "orders", HeartbeatInterval: time.Hour, Switch: known.get}.
		With(outbox.Limits{PollInterval: time.Millisecond}))
	testwait.Until(t, "the first one, before the record is read", func() bool { return len(relay.all()) == 1 })
	moving := outbox.Switch{Epoch: 2, From: "redis", To: "sql", By: "alice", Left: 40 * time.Second}
	settled := moving
	settled.Settled, settled.Left = true, 0
	for n, s := range []outbox.Switch{{Epoch: 1, From: "redis", To: "redis", Settled: true}, moving, settled} {
		known.set(s)
		testwait.Until(t, "one tells of the record", func() bool { return len(relay.all()) == n+2 })
		if got := relay.switches()[n+1]; got != heartbeat.Switch(s) {
			t.Errorf("heartbeat says %+v, want %+v", got, s)
		}
	}
	if first := relay.switches()[0]; first != (heartbeat.Switch{}) {
		t.Errorf("before the record was read a heartbeat says %+v", first)
	}
	for _, h := range relay.all() {
		if err := h.Validate(); err != nil || h.Interval != time.Hour {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

// TestTimeThatPassesIsNoNews: while locks move, the time that is left changes all the time.
func TestTimeThatPassesIsNoNews(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	s := outbox.Switch{Epoch: 2, From: "redis", To: "sql", Left: time.Hour}
	looks := 0
	look := func() outbox.Switch {
		looks++ // by one goroutine
		s.Left -= time.Second
		return s
	}
	o := open(t, db, outbox.Config{Relay: &relay, Service: "orders", HeartbeatInterval: time.Hour, Switch: look}.
		With(outbox.Limits{PollInterval: time.Millisecond}))
	publish(t, o, 1, 2, 3)
	testwait.Until(t, "the events are relayed", func() bool { return relay.tookAll(1, 2, 3) })
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(relay.all()); n != 1 || looks < 2 {
		t.Errorf("%d heartbeats after %d looks, want the first one alone", n, looks)
	}
}

// TestNewsIsNotMoreFrequentThanThePoll: a record that changes all the time makes no more
// heartbeats than the relay looks at its table.
func TestNewsIsNotMoreFrequentThanThePoll(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	epoch := int64(0)
	look := func() outbox.Switch {
		epoch++ // by one goroutine
		return outbox.Switch{Epoch: epoch, From: "a", To: "b"}
	}
	const poll = 20 * time.Millisecond
	o := open(t, db, outbox.Config{Relay: &relay, Service: "orders", HeartbeatInterval: time.Hour, Switch: look}.
		With(outbox.Limits{PollInterval: poll, BatchSize: 1}))
	for n := range 50 { // each wakes the relay
		publish(t, o, n)
	}
	testwait.Until(t, "some heartbeats", func() bool { return len(relay.all()) > 4 })
	list := relay.all()
	for i, h := range list[1:] {
		if d := h.At.Sub(list[i].At); d < poll {
			t.Errorf("heartbeat %d comes %v after the one before, want %v at least", i+1, d, poll)
		}
	}
}

// TestNewsIsSentAgain: news that did not arrive is sent again, before the next heartbeat is due.
func TestNewsIsSentAgain(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	var known record
	relay.answerWith(errDown)
	known.set(outbox.Switch{Epoch: 2, From: "redis", To: "sql"})
	o := open(t, db, outbox.Config{Relay: &relay, Service: "orders", HeartbeatInterval: time.Hour, Switch: known.get}.
		With(outbox.Limits{PollInterval: time.Millisecond}))
	testwait.Until(t, "several fail", func() bool { return len(relay.all()) > 2 })
	publish(t, o, 1)
	testwait.Until(t, "they hold up no event", func() bool { return relay.tookAll(1) })
	relay.answerWith(nil)
	testwait.Until(t, "one is sent", func() bool { return testmetric.Sum(t, o, "belay_outbox_heartbeats_total") == 1 })
}

// TestImpossibleSwitch: a heartbeat says first of all that the process lives.
func TestImpossibleSwitch(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	var known record
	known.set(outbox.Switch{To: "sql", Left: -time.Second})
	open(t, db, outbox.Config{Relay: &relay, Service: "orders", Switch: known.get})
	testwait.Until(t, "a heartbeat", func() bool { return len(relay.all()) > 0 })
	h := relay.all()[0]
	if err := h.Validate(); err != nil || h.Switch != (heartbeat.Switch{}) {
		t.Errorf("heartbeat says %+v, %v", h.Switch, err)
	}
}

// busyError is the error of a destination that asks for a long pause.
type busyError struct{}

func (busyError) Error() string             { return "busy" }
func (busyError) RetryAfter() time.Duration { return time.Minute }

// TestNewsWhileEventsPause: that no event is relayed for a while holds up no news.
func TestNewsWhileEventsPause(t *testing.T) {
	db := openSQLite(t)
	var relay beating
	relay.failWith(func(notify.Event) error { return busyError{} })
	var known record
	var log testlog.Buffer
	o := open(t, db, outbox.Config{
		Relay: &relay, Service: "orders", HeartbeatInterval: time.Hour, Switch: known.get, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}.With(outbox.Limits{PollInterval: time.Millisecond}))
	publish(t, o, 1)
	testwait.Until(t, "the relay pauses", func() bool { return strings.Contains(log.String(), "events are not relayed") })
	known.set(outbox.Switch{Epoch: 2, From: "redis", To: "sql"})
	testwait.Until(t, "one tells of the record", func() bool {
		list := relay.switches()
		return list[len(list)-1].Epoch == 2
	})
}
