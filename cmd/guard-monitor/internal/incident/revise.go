package incident

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/notify"
)

// reviseEvery is the least time between two times that recent events are
// explained again: there may be many.
const reviseEvery = 5 * time.Second

// revise explains recent events again after something was seen to happen to
// Redis, or another event explains more: the event often comes first.
func (t *Tracker) revise(ctx context.Context, now time.Time) error {
	if err := t.look(ctx, now); err != nil {
		return err
	}
	if pause := now.Sub(t.revised); !t.news.any() || 0 <= pause && pause < reviseEvery {
		return nil
	}
	t.revised = now
	if err := t.again(ctx, now); err != nil {
		return err
	}
	t.news = newNews()
	return nil
}

// look takes in what was seen of Redis since the last time.
func (t *Tracker) look(ctx context.Context, now time.Time) error {
	for {
		entries, err := t.cfg.Store.TimelineAfter(ctx, t.entry)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			t.entry = e.ID
			routine := e.Numbers[watch.Routine] == 1 // is no news
			if !slices.Contains(bystanders, e.Kind) && !routine && now.Sub(e.At) < lookBack {
				t.news.clusters[e.Cluster] = true
			}
		}
	}
}

// bystanders are the kinds that bear on no explanation: they end others, or say why a
// shard has another name.
var bystanders = []watch.Kind{watch.Agreed, watch.Resharding, watch.ClusterOK}

// maxAgain bounds the events that are explained again at once, the newest of
// which are left as they are.
const maxAgain = 50_000

// again explains the recent events that the news concern, and moves those for
// which the answer is another. Whole incidents keep their identity.
func (t *Tracker) again(ctx context.Context, now time.Time) error {
	moved := make(map[string]map[string][]explained) // by old incident and new key
	var seq int64
	var left int // as they are, since they can't be explained: they delay no other
	var why error
	d := t.desk(now)
	for seen := 0; seen < maxAgain; {
		events, err := t.cfg.Store.GroupedSince(ctx, now.Add(-lookBack), seq, batch)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		for _, r := range events {
			seen++
			seq = r.Seq
			if err := t.explainAgain(ctx, d, r, moved, left == 0); err != nil {
				left, why = left+1, err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if left > 0 {
		t.cfg.Logger.Error("events left unexplained", "events", left, "error", why)
	}
	for id, byKey := range moved {
		if err := d.relocate(ctx, id, byKey); err != nil {
			return err
		}
	}
	return d.save(ctx)
}

// explainAgain judges an event if the news concern it. A panic is an error; of many, the stack of
// the first is logged.
func (t *Tracker) explainAgain(ctx context.Context, d *desk, r Received, moved map[string]map[string][]explained, first bool) error {
	logger := t.cfg.Logger
	if !first {
		logger = slog.New(slog.DiscardHandler)
	}
	return background.Do(logger, "explain again", func() error {
		if at, _ := t.locate(r.Event.Place); !t.news.concern(r.Event, at.Cluster) {
			return nil
		}
		return d.judge(ctx, r, moved)
	})
}

// judge explains an event again and notes whether it belongs elsewhere.
func (d *desk) judge(ctx context.Context, r Received, moved map[string]map[string][]explained) error {
	i, err := d.incident(ctx, r.Incident)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	x, err := d.explain(ctx, r)
	if err != nil {
		return err
	}
	if x.key == i.Key {
		if i.State.Open() && i.believe(x.Explanation, r.Event.ID) {
			d.changed[i.ID] = true
		}
		d.keep(i.ID, x)
		return nil
	}
	if moved[i.ID] == nil {
		moved[i.ID] = make(map[string][]explained)
	}
	x.Event = notify.Event{ // all that is needed below: there may be many
		ID: x.Event.ID, Service: x.Event.Service, CaughtAt: x.Event.CaughtAt, Place: x.Event.Place, Count: x.Event.Count,
		Verdict: x.Event.Verdict, Outcome: x.Event.Outcome,
	}
	list := moved[i.ID][x.key]
	if len(list) > 0 && x.Cause != Unreachable && x.Confidence.weight() <= list[0].Confidence.weight() {
		x.Evidence = nil // of Unreachable each shard has a row
	}
	moved[i.ID][x.key] = append(list, x)
	return nil
}

// relocate moves events out of an incident. If all of them have one new group,
// the incident becomes that group's, or is merged into the one that is there.
func (d *desk) relocate(ctx context.Context, id string, byKey map[string][]explained) error {
	i := d.incidents[id]
	total := 0
	for _, list := range byKey {
		total += len(list)
	}
	whole := int64(total) >= i.Events
	if !whole && leaves(byKey, i.Exemplar) {
		d.explainAnew(i)
	}
	if whole && len(byKey) == 1 {
		for key, list := range byKey {
			target, err := d.last(ctx, key)
			if err != nil {
				return err
			}
			if target == nil || !target.State.Open() {
				d.retitle(i, key, list)
				return nil
			}
		}
	}
	var target *Incident
	for _, list := range byKey {
		for _, x := range list {
			var err error
			if target, err = d.place(ctx, x); err != nil {
				return err
			}
			target.Rate.weigh(EffectOf(x.Event.Verdict, x.Event.Outcome, int64(x.Event.Count)))
		}
	}
	if whole {
		d.resolve(i)
		i.MergedInto = target.ID
		delete(d.latest, i.Key)
		d.latest[i.Key] = nil
	}
	return nil
}

// keep remembers the best explanation of the events that stay in an incident.
func (d *desk) keep(id string, x explained) {
	if best, ok := d.staying[id]; !ok || x.Confidence.weight() > best.Confidence.weight() {
		d.staying[id] = x
	}
}

// leaves reports whether an event is among those that leave an incident.
func leaves(byKey map[string][]explained, event string) bool {
	for _, list := range byKey {
		if slices.ContainsFunc(list, func(x explained) bool { return x.Event.ID == event }) {
			return true
		}
	}
	return false
}

// explainAnew gives an incident the evidence of an event that stays in it.
func (d *desk) explainAnew(i *Incident) {
	if x, ok := d.staying[i.ID]; ok && i.State.Open() {
		i.Confidence = ""
		d.changed[i.ID] = i.believe(x.Explanation, x.Event.ID) || d.changed[i.ID]
	}
}

// retitle gives an incident another cause.
func (d *desk) retitle(i *Incident, key string, list []explained) {
	if d.latest[i.Key] == i {
		d.latest[i.Key] = nil
	}
	x := list[0]
	i.Key, i.Cause, i.DocLink = key, x.Cause, DocLink(x.Cause)
	i.locate(x)
	i.Confidence = ""
	for _, x := range list {
		i.believe(x.Explanation, x.Event.ID)
	}
	d.latest[key] = i
	d.changed[i.ID] = true
}
