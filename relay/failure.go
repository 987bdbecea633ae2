package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

// noRoutePause is the time before a relay looks again for the route of a topic: another relay,
// that has one, may have the lane by then.
const noRoutePause = 10 * time.Second

// maxReason bounds a stored reason, in bytes.
const maxReason = 500

// judge returns what follows from the error of a row.
func (l *loop) judge(r row, err error) failure {
	f := failure{row: r, reason: reason(err)}
	switch {
	case errors.Is(err, errNoRoute):
		f.pause = noRoutePause
	case errors.Is(err, errLate):
		f.dead = undecided
	case errors.Is(err, ErrRejected):
		f.dead, f.counts = rejected, true
	default:
		f.counts = true
		f.pause = wait.After(r.attempts, l.cfg.limits.minPause, l.cfg.limits.maxPause)
	}
	l.metrics.failed.Inc()
	log := l.log(r)
	switch {
	case f.dead != alive: // announce says so, once it is true
	case r.parked: // the first failure was logged
		log.Debug("message is not accepted again; its key waits", "error", err)
	default:
		log.Warn("message is not accepted; its key waits", "error", err)
	}
	return f
}

func (l *loop) log(r row) *slog.Logger {
	return l.cfg.Logger.With("message_id", r.msg.ID, "key", r.msg.Key, "topic", r.msg.Topic, "attempts", r.attempts)
}

// announce logs, counts and reports a message that is parked as a dead letter.
func (l *loop) announce(f failure) {
	l.metrics.dead.Inc()
	l.log(f.row).Error("message is a dead letter; its key waits until somebody decides", "error", f.reason)
	l.reporter.add(f)
}

// reason returns the text of an error in plain ASCII.
func reason(err error) string {
	quoted := strconv.QuoteToASCII(err.Error())
	quoted = quoted[1 : len(quoted)-1]
	return quoted[:min(len(quoted), maxReason)]
}

// An outage is that of a route whose destination is unavailable.
type outage struct {
	until   time.Time
	backoff wait.Backoff
	logged  bool
}

// suspend pauses the route of a topic. The failures of calls that were under way together count
// once.
func (l *loop) suspend(topic string, err error) {
	route, _ := routeOf(l.courier.routes, topic)
	o := l.outages[route.Topic]
	if o == nil {
		o = &outage{backoff: wait.Backoff{Min: l.cfg.limits.outage / 16, Max: l.cfg.limits.outage}}
		l.outages[route.Topic] = o
	}
	if time.Now().Before(o.until) {
		return
	}
	o.until = time.Now().Add(o.backoff.Next())
	if !o.logged {
		o.logged = true
		l.cfg.Logger.Warn("destination of messages is unavailable", "route", route.Topic, "error", err)
	}
}

// maxStrikes is how often a destination may be unavailable to one message, and not to those after it.
const maxStrikes = 3

// atFault reports whether a message finds its destination unavailable that others find available: the
// message is at fault, such as one at which the destination crashes.
func (l *loop) atFault(r *row) bool {
	route, _ := routeOf(l.courier.routes, r.msg.Topic)
	if n := l.accepted[route.Topic]; r.strikes == 0 || n > r.accepted {
		r.strikes, r.accepted = r.strikes+1, n
	}
	return r.strikes > maxStrikes
}

// resume notes that the route of a topic has accepted a message, and ends its outage.
func (l *loop) resume(topic string) {
	route, _ := routeOf(l.courier.routes, topic)
	l.accepted[route.Topic]++
	if o := l.outages[route.Topic]; o != nil {
		delete(l.outages, route.Topic)
		l.cfg.Logger.Info("destination of messages is available", "route", route.Topic)
		l.resumed, l.nextClean = append(l.resumed, route.Topic), time.Time{}
	}
}

// suspended returns for how long the route of a topic is paused.
func (l *loop) suspended(topic string) time.Duration {
	if len(l.outages) == 0 {
		return 0
	}
	route, _ := routeOf(l.courier.routes, topic)
	if o := l.outages[route.Topic]; o != nil {
		return time.Until(o.until)
	}
	return 0
}

// shed parks keys whose destination is unavailable, while more than half of what may be in hand is, so
// that the messages of other routes find room.
func (l *loop) shed() {
	if len(l.outages) == 0 {
		return
	}
	rows, bytes := l.window.rows, l.window.bytes
	for _, q := range l.window.queues {
		if rows <= l.cfg.limits.rows/2 && bytes <= l.cfg.limits.bytes/2 {
			return
		}
		if !q.ready() || q.waiting[0].strikes > 1 || l.suspended(q.waiting[0].msg.Topic) <= 0 {
			continue
		}
		for _, r := range q.waiting {
			rows, bytes = rows-1, bytes-r.size()
		}
		route, _ := routeOf(l.courier.routes, q.waiting[0].msg.Topic)
		l.failed = append(l.failed, failure{row: q.waiting[0], pause: l.cfg.limits.maxPause, reason: unavailable(route.Topic)})
		q.waiting, q.failed = q.waiting[1:], true
	}
}

// unavailable is the reason of keys that wait for a route.
func unavailable(route string) string {
	return reason(fmt.Errorf("%w: route %q", ErrUnavailable, route))
}
