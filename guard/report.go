package guard

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/library"
	"github.com/belaygo/belay/lock/lockengine"
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
		Library:  library.Version(),
		Trace:    r.trace(ctx),
	}
	if parts := strings.Split(ev.Trace.Parent, "-"); len(parts) == 4 {
		ev.TraceID = parts[1]
	}
	return ev
}

// trace returns the trace of ctx. It is empty if the Observer panics, so that no event is lost for it.
func (r *reporter) trace(ctx context.Context) (t notify.Trace) {
	_ = background.Do(r.cfg.Logger, "trace an event", func() error {
		t = r.cfg.Observer.Trace(ctx)
		return nil
	})
	return t
}

// publish hands an event over before Do returns. It never fails the operation:
// what can't be handed over is logged whole.
func (r *reporter) publish(ctx context.Context, ev notify.Event) { _ = r.handOver(ctx, ev) }

// handOver is publish for an event that can be published again: it reports whether it was handed over. A
// process that was paused meanwhile, as one that loses its lock often is, tries once more: its time
// has passed without a try. The event's id makes it one event.
func (r *reporter) handOver(ctx context.Context, ev notify.Event) bool {
	r.metrics.events.WithLabelValues(string(ev.Verdict)).Inc()
	begun := time.Now()
	err := r.try(ctx, ev)
	if err != nil && time.Since(begun) > r.cfg.EndTimeout+pausedFor {
		err = r.try(ctx, ev)
	}
	if err != nil {
		r.cfg.Logger.Error("publish event", "event", ev, "error", err)
	}
	return err == nil
}

// pausedFor is how much longer than it may a Publisher takes only if the process has been paused.
const pausedFor = time.Second

func (r *reporter) try(ctx context.Context, ev notify.Event) error {
	ctx, cancel := detached(ctx, r.cfg.EndTimeout)
	defer cancel()
	return r.cfg.Publisher.Publish(ctx, ev)
}

// publishLater is publish in a goroutine that no caller has.
func (r *reporter) publishLater(ctx context.Context, ev notify.Event) {
	_ = background.Do(r.cfg.Logger, "publish an event", func() error {
		r.publish(ctx, ev)
		return nil
	})
}

// detached returns a context for what must not end with ctx, but after d.
func detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}

func place(p lockengine.Place) notify.Place {
	return notify.Place{Node: p.Node, Slot: p.Slot, Entry: p.Entry}
}
