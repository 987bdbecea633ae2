package dispatch

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// Reasons to send, in Alertmanager's words where it has any.
const (
	reasonFirst    = "first notification"
	reasonNew      = "new alerts added"
	reasonResolved = "some alerts resolved"
	reasonOver     = "all alerts resolved"
	reasonRepeat   = "repeat interval elapsed"
	reasonWorse    = "escalated"
	reasonCause    = "cause found"
	reasonUnacked  = "not acknowledged" // the first message to a receiver with EscalateAfter
	reasonMore     = "more operations"
	reasonDigest   = "digest"
	reasonSilent   = "not sent" // the end of an incident, silenced, or to a receiver that does not want to hear of it
)

// news says what has changed of an incident since it was sent.
type news int

const (
	nothing  news = iota
	goesOn        // sent, and open still
	isNew         // open, and not sent since it began or came back
	isWorse       // escalates, or is critical by now
	hasGrown      // of twice as many operations as was sent
	hasCause      // was sent with another cause
	isOver        // sent as open, and resolved
	wasShort      // over before it was sent that it began or came back
)

func newsOf(now time.Time, i *incident.Incident, told store.Told) news {
	known := told != store.Told{}
	wasOpen := known && told.State.Open()
	switch {
	case i.Silenced() && i.State.Open():
		return nothing
	case i.State.Open() && !wasOpen:
		return isNew
	case i.State.Open() && i.State == incident.Escalating && told.State != incident.Escalating,
		i.State.Open() && i.Severity() == "critical" && told.Severity == "warning":
		return isWorse
	case i.State.Open() && told.Cause != i.Cause:
		return hasCause
	case i.State.Open() && i.AckedBy == "" && told.Severity != "" && grown(i.Counts(), told.Counts): // an older version noted neither
		return hasGrown
	case i.State.Open():
		return goesOn
	case wasOpen:
		return isOver
	case i.MergedInto == "" && (!known || i.OpenedAt.After(told.At) && !i.OpenedAt.After(now)):
		return wasShort
	}
	return nothing
}

// grown reports whether one of the counts has doubled since it was sent.
func grown(now, told incident.Counts) bool {
	return doubled(now.Failures, told.Failures) || doubled(now.Without, told.Without) || doubled(now.Refused, told.Refused)
}

func doubled(now, told int64) bool { return told >= 0 && now >= 2*max(told, 1) }

// group is the content of one message.
type group struct {
	key    string
	labels map[string]string
	reason string
	told   []*incident.Incident // the incidents of the message
	ends   []end                // what else has ended
	last   time.Time            // when something of the group was sent last
}

// member is an incident of a group with its news.
type member struct {
	*incident.Incident
	news news
	told store.Told
}

// courier serves one route in a goroutine of its own, so that a slow receiver does
// not delay the others.
type courier struct {
	*Dispatcher
	Route

	version int64                 // of the snapshot that was planned for last
	next    time.Time             // when to plan again, if the snapshot stays as it is
	told    map[string]store.Told // what was sent of an incident last, by ID; zero: nothing
	// ended has the labels of told whose end has arrived, by the ID of an incident.
	ended map[string]map[string]string

	seen     map[string]time.Time // since when an incident waits to be sent, by ID
	early    map[string]time.Time // since when an incident is known that opens later by the clock, by ID
	sent     map[string]time.Time // when a group was sent, where the log does not say it
	window   rate
	failures map[string]int       // in a row, by group
	notYet   map[string]time.Time // when to try a group again
	pause    time.Time            // until when nothing is sent to the receiver
	fails    int                  // in a row, of the receiver
	unlogged []store.Notification // sent, but not stored
}

func (d *Dispatcher) newCourier(r Route) *courier {
	if r.MaxAlerts <= 0 {
		r.MaxAlerts = math.MaxInt
	}
	return &courier{
		Dispatcher: d, Route: r, window: rate{limit: r.RatePerMinute},
		told: map[string]store.Told{}, ended: map[string]map[string]string{}, seen: map[string]time.Time{}, early: map[string]time.Time{}, sent: map[string]time.Time{},
		failures: map[string]int{}, notYet: map[string]time.Time{},
	}
}

// never is longer than any wait.
const never = time.Duration(math.MaxInt64)

// plan returns the groups that are due now, the incidents whose end is noted without a
// message, and how long it is until the next group is due if nothing changes.
func (c *courier) plan(now time.Time, incidents []*incident.Incident) (due []group, silent []*incident.Incident, wait time.Duration) {
	members := make(map[string][]member)
	waiting := make(map[string]time.Time)
	later := never // until an incident that the receiver does not get yet
	for _, i := range incidents {
		last := c.told[i.ID]
		if left := c.wants(now, c.opened(now, i), i, last); left > 0 {
			later = min(later, left)
			continue
		}
		m := member{i, newsOf(now, i, last), last}
		if m.news == goesOn && maps.Equal(c.ended[i.ID], labelsOf(i)) {
			m.news = isNew
		}
		if m.news == isNew || m.news == wasShort {
			waiting[i.ID] = cmp.Or(c.seen[i.ID], now)
		}
		if m.news == isOver && !c.Resolved || i.Silenced() && !i.State.Open() && m.news != nothing {
			silent = append(silent, i)
			continue
		}
		if m.news == nothing {
			continue
		}
		key := groupKey(c.groupOf(i))
		members[key] = append(members[key], m)
	}
	c.seen = waiting
	wait = later
	groups := make(map[string]group)
	for key, all := range members {
		g, left := c.judge(now, key, all)
		groups[key] = g
		if left <= 0 {
			due = append(due, g)
			continue
		}
		wait = min(wait, left)
	}
	slices.SortFunc(due, func(a, b group) int { return cmp.Compare(a.key, b.key) })
	return c.withEnds(now, due, groups), silent, wait
}

// opened returns since when an incident is open. A time that is still to come is from before the
// clock was set back: that one is open since it was first seen here.
func (c *courier) opened(now time.Time, i *incident.Incident) time.Time {
	if !i.OpenedAt.After(now) {
		delete(c.early, i.ID)
		return i.OpenedAt
	}
	if at, ok := c.early[i.ID]; !ok || at.After(now) {
		c.early[i.ID] = now
	}
	return c.early[i.ID]
}

// judge returns what is to be sent of a group, and how long it is until it is due.
func (c *courier) judge(now time.Time, key string, all []member) (g group, left time.Duration) {
	g = group{key: key, labels: c.groupOf(all[0].Incident), last: c.sent[key]}
	count := make(map[news]int)
	open, unattended := 0, 0
	waited := now
	for i := range all {
		m := &all[i]
		count[m.news]++
		g.told = append(g.told, m.Incident)
		if m.told.At.After(g.last) && !m.told.At.After(now) { // a clock that was set back leaves later ones
			g.last = m.told.At
		}
		if m.State.Open() {
			open++
		}
		if m.news == goesOn && (m.AckedBy == "" || c.Continuous) {
			unattended++
		}
		if at, ok := c.seen[m.ID]; ok && at.Before(waited) {
			waited = at
		}
	}
	g.reason = reason(count, open)
	if g.reason == reasonFirst && c.EscalateAfter > 0 {
		g.reason = reasonUnacked
	}
	switch known := count[goesOn] + count[hasGrown] + count[isOver]; {
	case g.reason == "" && unattended == 0:
		return g, never
	case g.reason == "":
		g.reason = reasonRepeat
		return g, c.RepeatInterval - now.Sub(g.last)
	case count[isWorse]+count[hasCause] > 0: // what people wait for, and at most once each
		return g, 0
	case known > 0:
		return g, c.GroupInterval - now.Sub(g.last)
	}
	return g, c.GroupWait - now.Sub(waited)
}

// reason returns why a group with these news is sent, "" if it only goes on.
func reason(count map[news]int, open int) string {
	fresh := count[isNew] + count[wasShort]
	known := count[goesOn] + count[isWorse] + count[hasCause] + count[hasGrown] + count[isOver]
	switch {
	case fresh > 0 && known == 0:
		return reasonFirst
	case fresh > 0:
		return reasonNew
	case count[isWorse] > 0:
		return reasonWorse
	case count[hasCause] > 0:
		return reasonCause
	case count[hasGrown] > 0:
		return reasonMore
	case count[isOver] > 0 && open == 0:
		return reasonOver
	case count[isOver] > 0:
		return reasonResolved
	}
	return ""
}

// digest makes one group of several.
func digest(groups []group) group {
	all := group{key: reasonDigest, labels: map[string]string{}, reason: reasonDigest + " of " + strconv.Itoa(len(groups)) + " groups"}
	for _, g := range groups {
		all.told = append(all.told, g.told...)
		all.ends = append(all.ends, g.ends...)
	}
	return all
}

// groupKey is written as Alertmanager writes labels.
func groupKey(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+strconv.Quote(labels[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// groupOf returns the labels that an incident shares with its group.
func (r *Route) groupOf(i *incident.Incident) map[string]string {
	return r.shared(labelsOf(i))
}

// shared returns those of the labels that all alerts of a group have.
func (r *Route) shared(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	maps.DeleteFunc(labels, func(name, _ string) bool { return !slices.Contains(r.GroupBy, name) })
	return labels
}
