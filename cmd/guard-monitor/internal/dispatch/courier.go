package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/internal/fail"
)

const (
	minPause  = time.Second
	maxPause  = 5 * time.Minute
	stopGrace = 3 * time.Second // for the message that is on its way
)

// Run sends until ctx ends, and returns nil when the messages on their way have
// arrived, at most three seconds later.
func (d *Dispatcher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, r := range d.cfg.Routes {
		wg.Go(func() { d.newCourier(r).run(ctx) })
	}
	<-ctx.Done()
	wg.Wait()
	return nil
}

func (c *courier) run(ctx context.Context) {
	tick := time.NewTicker(round)
	defer tick.Stop()
	for {
		if err := c.round(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Logger.LogAttrs(ctx, slog.LevelError, "store does not answer", slog.String("receiver", c.To.Name()), slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// round sends what is due. Its errors are the store's.
func (c *courier) round(ctx context.Context) error {
	if err := c.write(ctx, nil); err != nil {
		return err // what was sent must not be sent again
	}
	now := time.Now()
	current, err := c.cfg.Store.Current(ctx)
	if err != nil {
		return err
	}
	if current.Version == c.version && now.Before(c.next) {
		return nil
	}
	if err := c.recall(ctx, current.Incidents); err != nil {
		return err
	}
	due, silent, wait := c.plan(now, current.Incidents)
	if len(due)+len(silent) > 0 {
		wait = 0 // it may not be sent now, and is no longer due if it is
	}
	c.version, c.next = current.Version, now.Add(min(wait, planEvery))
	if err := c.log(ctx, &group{told: silent, reason: reasonSilent}, now, nil, 0); err != nil {
		return err
	}
	c.metrics.pending.WithLabelValues(c.To.Name()).Set(float64(len(due)))
	if now.Before(c.pause) {
		return nil
	}
	return c.send(ctx, now, c.ready(now, due))
}

// recall reads what the receiver was sent of the incidents that are new here, and forgets
// the incidents that are gone.
func (c *courier) recall(ctx context.Context, incidents []*incident.Incident) error {
	var fresh []string
	for _, i := range incidents {
		if _, ok := c.told[i.ID]; !ok {
			fresh = append(fresh, i.ID)
		}
	}
	if len(fresh) > 0 {
		told, err := c.cfg.Store.Told(ctx, c.To.Name(), fresh)
		if err != nil {
			return err
		}
		for _, id := range fresh {
			c.told[id] = told[id]
		}
	}
	if len(c.told) == len(incidents) {
		return nil
	}
	kept := make(map[string]store.Told, len(incidents))
	for _, i := range incidents {
		kept[i.ID] = c.told[i.ID]
	}
	c.told = kept
	maps.DeleteFunc(c.early, func(id string, _ time.Time) bool { _, ok := kept[id]; return !ok })
	maps.DeleteFunc(c.ended, func(id string, _ map[string]string) bool { _, ok := kept[id]; return !ok })
	return nil
}

// ready leaves out the groups whose message was refused a while ago, and deletes
// what is no longer needed.
func (c *courier) ready(now time.Time, due []group) (ready []group) {
	maps.DeleteFunc(c.notYet, func(_ string, until time.Time) bool { return !now.Before(until) })
	maps.DeleteFunc(c.sent, func(_ string, at time.Time) bool { return now.Sub(at) > max(c.GroupInterval, c.RepeatInterval) })
	maps.DeleteFunc(c.failures, func(key string, _ int) bool {
		return key != reasonDigest && !slices.ContainsFunc(due, func(g group) bool { return g.key == key })
	})
	for _, g := range due {
		if _, wait := c.notYet[g.key]; !wait {
			ready = append(ready, g)
		}
	}
	return ready
}

// send sends the groups, or one digest if the rate does not allow for all. After
// a digest that was refused it sends as many of them as the rate allows for.
func (c *courier) send(ctx context.Context, now time.Time, groups []group) error {
	allowed := c.window.allowed(now)
	_, refused := c.notYet[reasonDigest]
	switch {
	case len(groups) == 0 || allowed == 0:
		return nil
	case len(groups) > allowed && refused:
		groups = groups[:allowed]
	case len(groups) > allowed:
		groups = []group{digest(groups)}
	}
	for i := range groups {
		c.window.add(now)
		delivered, err := c.deliver(ctx, &groups[i])
		if err != nil || !delivered && time.Now().Before(c.pause) || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// deliver sends one group and stores that it did. The end of ctx does not cut off a
// message on its way: it would not be known whether it arrived.
func (c *courier) deliver(ctx context.Context, g *group) (delivered bool, err error) {
	detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })
	defer stop()

	message := c.notification(g, c.MaxAlerts)
	c.escalated(message)
	fail.Point("dispatch/before-send")
	failed := c.To.Send(detached, message)
	fail.Point("dispatch/sent")
	now := time.Now()
	c.metrics.count(c.To.Name(), now, failed)
	attempts := c.failures[g.key] + 1
	if failed != nil {
		c.failures[g.key] = attempts
		c.backOff(ctx, g, now, failed)
		if attempts > 1 {
			return false, nil // the log has the first of a row
		}
		return false, c.log(detached, g, now, failed, attempts)
	}
	delete(c.failures, g.key)
	c.fails = 0
	c.sent[g.key] = now
	for _, e := range g.ends {
		c.ended[e.ID] = e.labels
	}
	if c.Continuous && g.reason == reasonRepeat && !c.relabelled(g) {
		return true, nil
	}
	return true, c.log(detached, g, now, nil, attempts)
}

// backOff delays the next attempt: of this group if the message was refused, of all
// messages if the receiver does not answer.
func (c *courier) backOff(ctx context.Context, g *group, now time.Time, failed error) {
	longest := maxPause
	if c.Continuous { // it forgets what is not repeated
		longest = min(longest, c.RepeatInterval)
	}
	pause := longest
	var answer *receiver.Error
	refused := errors.As(failed, &answer) && answer.Permanent
	if !refused {
		pause = min(minPause<<min(c.fails, 20), longest)
		c.fails++
	}
	if answer != nil && answer.RetryAfter > pause {
		pause = answer.RetryAfter
	}
	if refused {
		c.notYet[g.key] = now.Add(pause)
	} else {
		c.pause = now.Add(pause)
	}
	c.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "notification not delivered",
		slog.String("receiver", c.To.Name()), slog.String("group", g.key), slog.Duration("retry_in", pause), slog.Any("error", failed))
}

// log stores that a group was sent, or why not.
func (c *courier) log(ctx context.Context, g *group, at time.Time, failed error, attempts int) error {
	if len(g.told) == 0 {
		return nil
	}
	list := make([]store.Notification, 0, len(g.told))
	for _, i := range g.told {
		n := store.Notification{
			At: at, Receiver: c.To.Name(), Incident: i.ID, Reason: g.reason,
			State: i.State, Cause: i.Cause, Cluster: i.Cluster, Shard: i.Shard, Severity: i.Severity(), Counts: i.Counts(),
			Attempts: attempts,
		}
		if failed != nil {
			n.Error = failed.Error()
		}
		list = append(list, n)
	}
	return c.write(ctx, list)
}

// write stores the list and what could not be stored before.
func (c *courier) write(ctx context.Context, list []store.Notification) error {
	c.unlogged = append(c.unlogged, list...)
	if len(c.unlogged) == 0 {
		return nil
	}
	if err := c.cfg.Store.AddNotifications(ctx, c.unlogged); err != nil {
		return err
	}
	fail.Point("dispatch/logged")
	for _, n := range c.unlogged {
		if n.Error == "" {
			c.told[n.Incident] = n.Told()
			delete(c.ended, n.Incident)
		}
	}
	c.unlogged = nil
	return nil
}
