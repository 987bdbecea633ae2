package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
	"github.com/belaygo/belay/notify/webhook"
)

const (
	postToken                 = "a-token-of-who-posts"
	messagesTable, callsTable = "shop.belay_message", "shop.belay_pending"
)

// anEvent returns one of a verdict that all versions know.
func anEvent(service string) notify.Event {
	id := uuid.NewString()
	return notify.Event{
		ID: id, Service: service, Instance: "1", Verdict: notify.VerdictUnknownCommit, Outcome: notify.OutcomeUnknown,
		Key: "order:" + id, CaughtAt: time.Now(), Count: 1,
	}
}

func deadLetter(service string) notify.Event {
	ev := anEvent(service)
	ev.Verdict, ev.Outcome = notify.VerdictDeadLetter, notify.OutcomeCommitted
	ev.Message = &notify.DeadLetter{ID: ev.ID, Topic: "orders", StoredAt: ev.CaughtAt, Attempts: 1}
	return ev
}

func undecidedCall(service string) notify.Event {
	ev := anEvent(service)
	ev.Verdict = notify.VerdictUndecided
	ev.Call = &notify.UndecidedCall{ID: ev.ID, Operation: "pay", Since: ev.CaughtAt, Until: ev.CaughtAt, Tries: 1}
	return ev
}

// note notes an event that was reported.
func (v *versions) note(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.noted[id] = true
}

// robbed starts an instance and returns when a command has removed the lock with which it stands in
// its transaction.
func (v *versions) robbed(program, ttl, key, command string) *process {
	v.t.Helper()
	a := v.instance(program, "A", "-hold", "-ttl", ttl, "-key", key, "-order", key)
	a.await("stands")
	args := []any{command}
	if command == "DEL" {
		args = append(args, key)
	}
	if err := v.cluster.on(v.cluster.shardOf(key).master, args...).Err(); err != nil {
		v.t.Fatal(err)
	}
	return a
}

func (v *versions) instance(program, name string, args ...string) *process {
	v.t.Helper()
	return start(v.t, name, slices.Concat(v.env, []string{asInstance + "=1"}), program, append([]string{"-name", name}, args...)...)
}

// intercepted removes the lock of an instance, whose row another one inserts then, and returns the id
// of the event.
func (v *versions) intercepted(program, key, command string) (event string) {
	v.t.Helper()
	a := v.robbed(program, "30s", key, command)
	b := v.instance(program, "B", "-key", key, "-order", key, "-wait", "30s")
	v.want(b.await("ended"), "done")
	b.finish()
	a.Proceed()
	result := a.await("ended")
	v.want(result, "intercepted ")
	a.finish()
	event = strings.TrimPrefix(result, "intercepted ")
	v.note(event)
	return event
}

// lost removes the lock of an instance, which finds that by its next renewal, and returns the id of
// the event.
func (v *versions) lost(program, key, command string) (event string) {
	v.t.Helper()
	a := v.robbed(program, "3s", key, command)
	v.want(a.await("ended"), "lost")
	a.finish()
	testwait.Until(v.t, "the monitor has the event of "+key, func() bool {
		for _, e := range v.items("events?key=" + url.QueryEscape(key)) {
			event = e.Event.ID
		}
		return event != ""
	})
	v.note(event)
	return event
}

// elsewhere returns a key of another shard.
func (v *versions) elsewhere(key string) string {
	v.t.Helper()
	for n := 0; ; n++ {
		if other := fmt.Sprintf("order:%d", n); v.cluster.shardOf(other).master != v.cluster.shardOf(key).master {
			return other
		}
	}
}

// openShop opens the outbox of a service of this commit, whose heartbeats count messages and calls.
func (v *versions) openShop() *outbox.Outbox {
	v.t.Helper()
	broker, err := rabbitmq.New(v.amqp, rabbitmq.Config{})
	if err != nil {
		v.t.Fatal(err)
	}
	box, err := outbox.New(v.db, outbox.Config{
		Relay: broker, Service: "shop", Instance: "1", HeartbeatInterval: 200 * time.Millisecond,
		Messages: func(context.Context) (outbox.Messages, error) {
			return outbox.Messages{Table: messagesTable, Dead: 1}, nil
		},
		Calls: func(context.Context) (outbox.Calls, error) {
			return outbox.Calls{Table: callsTable, Pending: 1, Undecided: 1}, nil
		},
	})
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := errors.Join(box.Close(ctx), broker.Close(ctx)); err != nil {
			v.t.Error(err)
		}
	})
	return box
}

// report has the shop report an event.
func (v *versions) report(ev notify.Event) {
	if err := v.shop.Publish(v.t.Context(), ev); err != nil {
		v.t.Errorf("the outbox did not take an event: %v", err)
	}
	v.note(ev.ID)
}

// post posts an event to the monitor.
func (v *versions) post(ev notify.Event) error {
	v.note(ev.ID)
	return v.posting(func(to webhook.Publisher) error { return to.Publish(v.t.Context(), ev) })
}

// beat posts a heartbeat that counts messages and calls.
func (v *versions) beat() error {
	h := heartbeat.Heartbeat{
		ID: uuid.NewString(), Service: "posted", Instance: "1", At: time.Now(), Interval: time.Minute,
		Messages: heartbeat.Messages{Table: messagesTable, Dead: 1}, Calls: heartbeat.Calls{Table: callsTable, Pending: 1},
	}
	return v.posting(func(to webhook.Publisher) error { return to.PublishHeartbeat(v.t.Context(), h) })
}

func (v *versions) posting(do func(webhook.Publisher) error) error {
	to, err := webhook.New(v.url, webhook.Config{Token: postToken})
	if err != nil {
		return err
	}
	return errors.Join(do(to), to.Close(v.t.Context()))
}
