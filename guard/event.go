package guard

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// event begins a report.
func (g *Guard) event(v notify.Verdict, o notify.Outcome, key string) notify.Event {
	return notify.Event{
		ID:       newEventID(),
		Service:  g.cfg.Service,
		Instance: g.cfg.Instance,
		Verdict:  v,
		Outcome:  o,
		Key:      key,
		CaughtAt: time.Now(),
		Count:    1,
		Library:  libraryVersion(),
	}
}

// event begins the report of a failure of the call's lock.
func (c *call) event(v notify.Verdict, o notify.Outcome) notify.Event {
	ev := c.guard.event(v, o, c.key)
	c.guard.trace(c.ctx, &ev)
	if c.without != nil {
		ev.Place = place(c.outage.place)
		return ev
	}
	grant := c.lease.Grant()
	ev.Place = place(grant.Place)
	ev.Owner = grant.Owner
	ev.Token = grant.Token
	if grant.FirstToken != grant.Token {
		ev.FirstToken = grant.FirstToken
	}
	ev.AcquiredAt = grant.AcquiredAt
	ev.TTL = grant.TTL
	ev.Deadline = grant.Deadline
	return ev
}

// lostEvent is the report of a lock whose loss no conflict has shown.
func (c *call) lostEvent(o notify.Outcome, gone error) notify.Event {
	ev := c.event(notify.VerdictLost, o)
	ev.Loss = loss(gone)
	if errors.Is(gone, lock.ErrClosed) { // and its time ran out before the COMMIT was answered
		ev.Loss = notify.LossExpired
	}
	return ev
}

// unknownEvent is the report of a commit of unknown outcome, and of the loss of the
// lock if that is known. No release of this lease will find it out, for those who
// had the lock before either, so the lock is asked.
func (c *call) unknownEvent(lapse error) notify.Event {
	ev := c.event(notify.VerdictUnknownCommit, notify.OutcomeUnknown)
	ev.Loss = loss(lapse)
	if ev.Loss == "" {
		if who, _ := c.holder(); who == notify.HolderNone || who == notify.HolderOther {
			ev.Loss = notify.LossGone
		}
	}
	if ev.Loss != "" {
		ev.Verdict = notify.VerdictLost
	}
	return ev
}

// loss puts into the event's words what the lease said of its end. That Close gave it
// up is no loss.
func loss(err error) notify.Loss {
	switch {
	case errors.Is(err, lock.ErrClosed):
		return ""
	case errors.Is(err, lock.ErrUnrenewed):
		return notify.LossUnrenewed
	case errors.Is(err, lock.ErrExpired):
		return notify.LossExpired
	case errors.Is(err, lock.ErrMaxHold):
		return notify.LossMaxHold
	case errors.Is(err, lock.ErrLost):
		return notify.LossGone
	}
	return ""
}

func place(p lock.Place) notify.Place {
	return notify.Place{Node: p.Node, Slot: p.Slot, Entry: p.Entry}
}

func (c *call) publish(ev notify.Event) { c.guard.publish(c.ctx, ev) }

// publish hands an event over before Do returns. It never fails the operation:
// what can't be handed over is logged whole.
func (g *Guard) publish(ctx context.Context, ev notify.Event) {
	g.metrics.events.WithLabelValues(string(ev.Verdict)).Inc()
	ctx, cancel := g.detached(ctx)
	defer cancel()
	if err := g.cfg.Publisher.Publish(ctx, ev); err != nil {
		g.cfg.Logger.Error("publish event", "event", ev, "error", err)
	}
}

// newEventID returns a UUIDv7, which sorts by time.
func newEventID() string {
	id, err := uuid.NewV7()
	if err != nil {
		id = uuid.New()
	}
	return id.String()
}

// libraryVersion is the version of this module that the program was built with.
var libraryVersion = sync.OnceValue(func() string {
	const path = "github.com/belaygo/belay"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == path {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
})
