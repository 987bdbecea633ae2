package guard

import (
	"context"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// reporter builds events and hands them to the Publisher.
type reporter struct {
	cfg     Config
	metrics *metrics
}

// event begins a report. It carries the trace of ctx.
func (r *reporter) event(ctx context.Context, v notify.Verdict, o notify.Outcome, key string) notify.Event {
	ev := notify.Event{
		ID:       uuid.Must(uuid.NewV7()).String(), // sorts by time
		Service:  r.cfg.Service,
		Instance: r.cfg.Instance,
		Verdict:  v,
		Outcome:  o,
		Key:      key,
		CaughtAt: time.Now(),
		Count:    1,
		Library:  libraryVersion(),
		Trace:    r.cfg.Observer.Trace(ctx),
	}
	if parts := strings.Split(ev.Trace.Parent, "-"); len(parts) == 4 {
		ev.TraceID = parts[1]
	}
	return ev
}

// publish hands an event over before Do returns. It never fails the operation:
// what can't be handed over is logged whole.
func (r *reporter) publish(ctx context.Context, ev notify.Event) {
	r.metrics.events.WithLabelValues(string(ev.Verdict)).Inc()
	ctx, cancel := detached(ctx, r.cfg.EndTimeout)
	defer cancel()
	if err := r.cfg.Publisher.Publish(ctx, ev); err != nil {
		r.cfg.Logger.Error("publish event", "event", ev, "error", err)
	}
}

// detached returns a context for what must not end with ctx, but after d.
func detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}

func place(p lock.Place) notify.Place {
	return notify.Place{Node: p.Node, Slot: p.Slot, Entry: p.Entry}
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
