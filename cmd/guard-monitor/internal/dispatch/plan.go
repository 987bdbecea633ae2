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
	reasonDigest   = "digest"
	reasonSilent   = "not sent" // the end of an incident, silenced, or to a receiver that does not want to hear of it
)

// news says what has changed of an incident since it was sent.
type news int

const (
	nothing  news = iota
	goesOn        // sent, and open still
	isNew         // open, and not sent since it began or came back
	isWorse       // escalates
	hasCause      // was sent with another cause
	isOver        // sent as open, and resolved
	wasShort      // over before it was sent that it began or came back
)

func newsOf(now time.Time, i *incident.Incident, told store.Told, known bool) news {
	wasOpen := known && told.State.Open()
	switch {
	case i.Silenced() && i.State.Open():
		return nothing
	case i.State.Open() && !wasOpen:
		return isNew
	case i.State.Open() && i.State == incident.Escalating && told.State != incident.Escalating:
		return isWorse
	case i.State.Open() && told.Cause != i.Cause:
		return hasCause
	case i.State.Open():
		return goesOn
	case wasOpen:
		return isOver
	case i.MergedInto == "" && (!known || i.OpenedAt.After(told.At) && !i.OpenedAt.After(now)):
		return wasShort
	}
	return nothing
}

// group is the content of one message.
type group struct {
	key    string
	labels map[string]string
	reason string
	told   []incident.Incident // the incidents of the message
	last   time.Time           // when something of the group was sent last
}

// member is an incident of a group with its news.
type member struct {
	incident.Incident
	news news
	told store.Told
}

// courier serves one route in a goroutine of its own, so that a slow receiver does
// not delay the others.
type courier struct {
	*Dispatcher
	Route

	seen     map[string]time.Time // since when an incident waits to be sent, by ID
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
		seen: map[string]time.Time{}, sent: map[string]time.Time{},
		failures: map[string]int{}, notYet: map[string]time.Time{},
	}
}

// plan returns the groups that are due now, and the incidents whose end is noted
// without a message.
func (c *courier) plan(now time.Time, incidents []incident.Incident, told map[string]store.Told) (due []group, silent []incident.Incident) {
	members := make(map[string][]member)
	waiting := make(map[string]time.Time)
	for _, i := range incidents {
		last, known := told[i.ID]
		m := member{i, newsOf(now, &i, last, known), last}
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
		key := groupKey(c.groupOf(&i))
		members[key] = append(members[key], m)
	}
	c.seen = waiting
	for key, all := range members {
		if g, ok := c.judge(now, key, all); ok {
			due = append(due, g)
		}
	}
	slices.SortFunc(due, func(a, b group) int { return cmp.Compare(a.key, b.key) })
	return due, silent
}

// judge decides whether a group is due.
func (c *courier) judge(now time.Time, key string, all []member) (group, bool) {
	g := group{key: key, labels: c.groupOf(&all[0].Incident), last: c.sent[key]}
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
	if g.reason == "" {
		g.reason = reasonRepeat
		return g, unattended > 0 && now.Sub(g.last) >= c.RepeatInterval
	}
	switch known := count[goesOn] + count[isOver]; {
	case count[isWorse]+count[hasCause] > 0: // what people wait for, and at most once each
		return g, true
	case known > 0:
		return g, now.Sub(g.last) >= c.GroupInterval
	}
	return g, now.Sub(waited) >= c.GroupWait
}

// reason returns why a group with these news is sent, "" if it only goes on.
func reason(count map[news]int, open int) string {
	fresh := count[isNew] + count[wasShort]
	known := count[goesOn] + count[isWorse] + count[hasCause] + count[isOver]
	switch {
	case fresh > 0 && known == 0:
		return reasonFirst
	case fresh > 0:
		return reasonNew
	case count[isWorse] > 0:
		return reasonWorse
	case count[hasCause] > 0:
		return reasonCause
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
	labels := labelsOf(i)
	maps.DeleteFunc(labels, func(name, _ string) bool { return !slices.Contains(r.GroupBy, name) })
	return labels
}
