package incident

import (
	"context"
	"time"

	"github.com/belaygo/belay/notify"
)

// batch is how many events are worked on at once.
const batch = 500

// group puts new events into incidents, the oldest first.
func (t *Tracker) group(ctx context.Context, now time.Time) error {
	for {
		events, err := t.cfg.Store.Ungrouped(ctx, batch)
		if err != nil {
			return err
		}
		due := 0
		for due < len(events) && t.settled(events[due], now) {
			due++
		}
		if due == 0 {
			return nil
		}
		err = t.groupBatch(ctx, now, events[:due], (*desk).explain)
		if err != nil && ctx.Err() == nil {
			err = t.groupEach(ctx, now, events[:due])
		}
		if err != nil {
			return err
		}
	}
}

// settled reports whether it is time to explain an event: also if it was stored
// at a time to come, before the clock was set back.
func (t *Tracker) settled(r Received, now time.Time) bool {
	age := now.Sub(r.At)
	return t.cfg.Settle < 0 || age >= t.cfg.Settle || age < -clockSet
}

// groupEach puts events into incidents one by one, so that one that cannot be
// explained, or whose explanation cannot be stored, keeps back no other. It goes
// without an explanation.
func (t *Tracker) groupEach(ctx context.Context, now time.Time, events []Received) error {
	for _, r := range events {
		why := t.groupBatch(ctx, now, []Received{r}, (*desk).explain)
		if why == nil {
			continue
		}
		if err := t.groupBatch(ctx, now, []Received{r}, (*desk).unexplained); err != nil {
			return err // it is the store
		}
		t.cfg.Logger.Error("event unexplained", "event_id", r.Event.ID, "error", why)
	}
	return nil
}

// explainer is a method of desk.
type explainer func(*desk, context.Context, Received) (explained, error)

func (t *Tracker) groupBatch(ctx context.Context, now time.Time, events []Received, explain explainer) error {
	d := t.desk(now)
	var tell []Received
	for _, r := range events {
		x, err := explain(d, ctx, r)
		if err != nil {
			return err
		}
		i, err := d.place(ctx, x)
		if err != nil {
			return err
		}
		i.count(now, t.cfg.Fresh, int64(r.Event.Count))
		if tells(r.Event) {
			tell = append(tell, r)
		}
	}
	if err := d.save(ctx); err != nil {
		return err
	}
	return t.retell(ctx, now, tell)
}

// count moves an incident's state on by n failures.
func (i *Incident) count(now time.Time, fresh time.Duration, n int64) {
	i.Rate.add(now, n)
	switch {
	case i.Rate.escalates():
		i.State = Escalating
	case i.State == Escalating || now.Sub(i.OpenedAt) >= fresh:
		i.State = Ongoing
	}
}

// tells reports whether an event can explain others: who lost a lock and wrote
// all the same, and who works without one.
func tells(ev notify.Event) bool {
	switch ev.Verdict {
	case notify.Degraded, notify.UnknownCommit:
		return true
	case notify.Lost:
		return ev.Outcome == notify.Committed || ev.Outcome == notify.Unknown
	case notify.Overlap:
	}
	return false
}

// retell explains the earlier events again that news may explain.
func (t *Tracker) retell(ctx context.Context, now time.Time, news []Received) error {
	keys, services := make(map[string]bool), make(map[string]bool)
	for _, r := range news {
		if r.Event.Verdict == notify.Degraded {
			services[r.Event.Service] = true
		} else {
			keys[r.Event.Key] = true
		}
	}
	if len(keys)+len(services) == 0 {
		return nil
	}
	return t.again(ctx, now, func(ev notify.Event) bool {
		return ev.Verdict == notify.Overlap && (keys[ev.Key] || services[ev.Service])
	})
}
