package selfcheck

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

const (
	minPause, maxPause = time.Second, 5 * time.Minute
	// spacing is between two messages about failures, or Config.After if that is shorter:
	// robots count messages per minute.
	spacing = time.Minute
	// idPrefix stands before a part's name where the log has the id of an incident.
	idPrefix   = "guard-monitor/"
	watchdogID = idPrefix + "watchdog"
	// Shorter intervals of the watchdog are not remembered across restarts.
	rememberedWatchdog = time.Hour
)

// courier serves one route in a goroutine of its own, so that a slow receiver does not
// delay the others.
type courier struct {
	*Check
	Route

	told     map[string]time.Time // since when a part is known to the receiver as failed
	sentAt   time.Time            // last message about failures
	watchAt  time.Time            // last watchdog message
	pause    time.Time            // until when nothing is sent
	fails    int                  // in a row
	unlogged []store.Notification // sent, but not stored
}

func (c *Check) newCourier(r Route) *courier {
	return &courier{Check: c, Route: r, told: make(map[string]time.Time)}
}

func (c *courier) run(ctx context.Context) {
	c.remember(ctx)
	everyRound(ctx, func() {
		c.write(ctx, nil)
		now := time.Now()
		if now.Before(c.pause) {
			return
		}
		if c.Failures {
			c.failures(ctx, now)
		}
		if c.Watchdog > 0 && now.Sub(c.watchAt) >= c.Watchdog && c.allWell(now) {
			c.watchdog(ctx, now)
		}
	})
}

// remember reads what was sent before the start. If it cannot be read, nothing was.
func (c *courier) remember(ctx context.Context) {
	for _, name := range c.names(ctx) {
		if n, ok := c.last(ctx, idPrefix+name); ok && n.State.Open() {
			c.told[name] = n.At
			if n.At.After(c.sentAt) {
				c.sentAt = n.At
			}
		}
	}
	if n, ok := c.last(ctx, watchdogID); ok && c.Watchdog >= rememberedWatchdog {
		c.watchAt = n.At
	}
	now := time.Now()
	if c.sentAt.After(now) { // the clock was set back
		c.sentAt = now
	}
	if c.watchAt.After(now) {
		c.watchAt = now
	}
}

// names returns the parts that the receiver may know as failed: those that there are, and others that
// recent messages were about.
func (c *courier) names(ctx context.Context) (names []string) {
	for _, p := range c.parts {
		names = append(names, p.Name)
	}
	recent, err := c.cfg.Log.Notifications(ctx, "", store.MaxRows)
	if err != nil {
		return names
	}
	for _, n := range recent {
		name, ok := strings.CutPrefix(n.Incident, idPrefix)
		if ok && n.Incident != watchdogID && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// last returns the last message of that id that the receiver has taken.
func (c *courier) last(ctx context.Context, id string) (store.Notification, bool) {
	all, err := c.cfg.Log.Notifications(ctx, id, store.MaxRows)
	if err != nil {
		return store.Notification{}, false
	}
	for _, n := range all { // the newest first
		if n.Receiver == c.To.Name() && n.Error == "" {
			return n, true
		}
	}
	return store.Notification{}, false
}

// failures sends which parts have failed, and which work again, if that is news to the
// receiver or was sent long ago.
func (c *courier) failures(ctx context.Context, now time.Time) {
	var failed, over []report
	for _, p := range c.parts {
		s, well := p.look(now)
		since, known := c.told[p.Name]
		switch {
		case s.failed && now.Sub(s.since) >= c.cfg.After+c.Delay:
			failed = append(failed, report{Part: p.Part, since: s.since, err: s.err})
		case known && well:
			over = append(over, report{Part: p.Part, since: since, until: now})
		}
	}
	over = append(over, c.gone(now)...)
	if !c.Resolved {
		c.learn(ctx, now, over, incident.Resolved, reasonSilent)
		over = nil
	}
	news := len(over) > 0 || c.isNews(failed)
	again := len(failed) > 0 && now.Sub(c.sentAt) >= c.Repeat
	if !again && (!news || now.Sub(c.sentAt) < min(spacing, c.cfg.After)) {
		return
	}
	if !c.send(ctx, c.message(failed, over)) {
		return
	}
	c.sentAt = now
	if news || !c.Continuous {
		c.learn(ctx, now, failed, incident.Ongoing, reasonFailed)
	}
	c.learn(ctx, now, over, incident.Resolved, reasonOver)
}

// gone returns the failed parts that guard-monitor no longer needs.
func (c *courier) gone(now time.Time) (over []report) {
	for _, name := range slices.Sorted(maps.Keys(c.told)) {
		if slices.ContainsFunc(c.parts, func(p *watched) bool { return p.Name == name }) {
			continue
		}
		over = append(over, report{
			Part: Part{Name: name, Summary: "guard-monitor no longer needs " + name}, since: c.told[name], until: now,
		})
	}
	return over
}

// isNews reports whether the receiver does not know one of the failures.
func (c *courier) isNews(failed []report) bool {
	for _, r := range failed {
		if _, known := c.told[r.Name]; !known {
			return true
		}
	}
	return false
}

// learn remembers what the receiver knows now.
func (c *courier) learn(ctx context.Context, now time.Time, all []report, is incident.State, reason string) {
	var list []store.Notification
	for _, r := range all {
		if is.Open() {
			c.told[r.Name] = r.since
		} else {
			delete(c.told, r.Name)
		}
		list = append(list, c.entry(now, idPrefix+r.Name, is, reason))
	}
	c.write(ctx, list)
}

// allWell reports whether all parts work. An error of a moment is none.
func (c *courier) allWell(now time.Time) bool {
	for _, p := range c.parts {
		if s, _ := p.look(now); s.failed || !s.proved {
			return false
		}
	}
	return true
}

func (c *courier) watchdog(ctx context.Context, now time.Time) {
	if !c.send(ctx, c.watchdogMessage(now)) {
		return
	}
	c.watchAt = now
	if c.Watchdog >= rememberedWatchdog {
		c.write(ctx, []store.Notification{c.entry(now, watchdogID, incident.Ongoing, reasonWatchdog)})
	}
}

// send reports whether the receiver has taken the message. If not, it delays the next.
func (c *courier) send(ctx context.Context, n *receiver.Notification) bool {
	err := c.To.Send(ctx, n)
	if err == nil {
		c.fails = 0
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	pause := min(minPause<<min(c.fails, 20), maxPause)
	if refused, ok := errors.AsType[*receiver.Error](err); ok {
		pause = max(pause, refused.RetryAfter)
	}
	c.fails++
	c.pause = time.Now().Add(pause)
	c.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "notification not delivered", slog.String("receiver", c.To.Name()),
		slog.String("group", n.GroupKey), slog.Duration("retry_in", pause), slog.Any("error", err))
	return false
}

func (c *courier) entry(at time.Time, id string, is incident.State, reason string) store.Notification {
	return store.Notification{At: at, Receiver: c.To.Name(), Incident: id, Reason: reason, State: is, Attempts: 1}
}

// maxUnlogged bounds what waits for a store that takes nothing.
const maxUnlogged = 100

// write stores the list and what could not be stored before. What does not get stored is
// tried again: the store may be what has failed.
func (c *courier) write(ctx context.Context, list []store.Notification) {
	c.unlogged = append(c.unlogged, list...)
	if len(c.unlogged) == 0 {
		return
	}
	if len(c.unlogged) > maxUnlogged {
		c.unlogged = c.unlogged[len(c.unlogged)-maxUnlogged:]
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if c.cfg.Log.AddNotifications(ctx, c.unlogged) == nil {
		c.unlogged = nil
	}
}
