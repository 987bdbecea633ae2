package incident

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/background"
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
		err = t.explainBatch(ctx, now, events[:due])
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
// explained, or whose explanation cannot be stored, delays no other. It gets no
// explanation.
func (t *Tracker) groupEach(ctx context.Context, now time.Time, events []Received) error {
	for _, r := range events {
		why := t.explainBatch(ctx, now, []Received{r})
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

// explainBatch explains events. A panic is the error of an event that cannot be explained.
func (t *Tracker) explainBatch(ctx context.Context, now time.Time, events []Received) error {
	return background.Do(t.cfg.Logger, "explain", func() error { return t.groupBatch(ctx, now, events, (*desk).explain) })
}

// explainer is a method of desk.
type explainer func(*desk, context.Context, Received) (explained, error)

func (t *Tracker) groupBatch(ctx context.Context, now time.Time, events []Received, explain explainer) error {
	d := t.desk(now)
	for _, r := range events {
		x, err := explain(d, ctx, r)
		if err != nil {
			return err
		}
		i, err := d.place(ctx, x)
		if err != nil {
			return err
		}
		i.count(now, EffectOf(r.Event.Verdict, r.Event.Outcome, int64(r.Event.Count)))
	}
	if err := d.save(ctx); err != nil {
		return err
	}
	for _, r := range events {
		t.news.hear(r.Event)
	}
	return nil
}

// fresh is how long an incident is new.
const fresh = time.Minute

// count moves an incident's state on by what became of the operations of one event.
func (i *Incident) count(now time.Time, e Effect) {
	i.Rate.add(now, e)
	switch {
	case i.Rate.escalates():
		i.State = Escalating
	case i.State == Escalating || now.Sub(i.OpenedAt) >= fresh:
		i.State = Ongoing
	}
}
