package guard

import (
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// event begins the report of a failure of the attempt's lock.
func (a *attempt) event(v notify.Verdict, o notify.Outcome) notify.Event {
	place := a.lease.Place()
	first := a.lease.FirstToken()
	if first == a.lease.Token() {
		first = 0
	}
	return notify.Event{
		ID:         newEventID(),
		Service:    a.guard.cfg.Service,
		Instance:   a.guard.cfg.Instance,
		Verdict:    v,
		Outcome:    o,
		Key:        a.lease.Key(),
		Owner:      a.lease.Owner(),
		Token:      a.lease.Token(),
		FirstToken: first,
		AcquiredAt: a.lease.AcquiredAt(),
		TTL:        a.lease.TTL(),
		Deadline:   a.lease.Deadline(),
		CaughtAt:   time.Now(),
		Place:      notify.Place{Node: place.Node, Slot: place.Slot},
		Count:      1,
		Library:    libraryVersion(),
	}
}

// loss puts into the event's words what the lease said of its end.
func loss(err error) notify.Loss {
	switch {
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

// describe adds to ev what was found.
func (f finding) describe(ev *notify.Event) {
	c := f.conflict
	ev.Table = c.Table
	ev.Index = c.Columns
	ev.HolderAtConflict = f.relation
	ev.HolderOwner = f.holder
	ev.Loss = f.loss
	if f.loss == "" && (f.relation == notify.HolderOther || f.relation == notify.HolderNone) {
		ev.Loss = notify.LossGone
	}
	if c.Kind == dbguard.Stale && c.Evidence.Found {
		ev.Versions = &notify.Versions{
			Expected: int64(c.Evidence.Version),
			Found:    int64(c.Evidence.FoundVersion),
		}
	}
}

// publish hands an event over before Do returns. It never fails the operation:
// what can't be handed over is logged whole.
func (a *attempt) publish(ev notify.Event) {
	ctx, cancel := a.detached()
	defer cancel()
	if err := a.guard.cfg.Publisher.Publish(ctx, ev); err != nil {
		a.guard.cfg.Logger.Error("publish event", "event", ev, "error", err)
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
