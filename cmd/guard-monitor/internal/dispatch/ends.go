package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

// end is the end of an alert whose incident has other labels by now.
type end struct {
	*incident.Incident
	labels map[string]string // that it was sent with
	at     time.Time
}

// withEnds adds the ends of what the receiver was sent under other labels: to the message of
// the group that these labels belong to, which comes before that of the change. So an end that does
// not arrive keeps back the change, too, unless the receiver refuses it, and one that has arrived is
// not sent again with a change that has not.
func (c *courier) withEnds(now time.Time, due []group, groups map[string]group) []group {
	if !c.Keyed || !c.Resolved {
		return due
	}
	for n := 0; n < len(due); n++ { // it grows
		for _, i := range due[n].told {
			labels := c.labelsSent(i)
			if labels == nil || maps.Equal(labels, labelsOf(i)) {
				continue
			}
			key := groupKey(c.shared(labels))
			if slices.ContainsFunc(groups[key].told, func(other *incident.Incident) bool {
				return other.State.Open() && maps.Equal(labels, labelsOf(other))
			}) {
				continue
			}
			at := slices.IndexFunc(due, func(g group) bool { return g.key == key })
			if at < 0 {
				at, due = len(due), append(due, c.endOf(key, labels, groups))
			}
			due[at].ends = append(due[at].ends, end{i, labels, now})
		}
	}
	return endsFirst(due)
}

// endsFirst puts each group behind those that have the ends of its incidents.
func endsFirst(due []group) []group {
	sorted := make([]group, 0, len(due))
	visited := make(map[string]bool)
	var visit func(group)
	visit = func(g group) {
		if visited[g.key] {
			return
		}
		visited[g.key] = true
		for _, other := range due {
			if slices.ContainsFunc(other.ends, func(e end) bool { return slices.Contains(g.told, e.Incident) }) {
				visit(other)
			}
		}
		sorted = append(sorted, g)
	}
	for _, g := range due {
		visit(g)
	}
	return sorted
}

// endOf returns the group that an end belongs to, with what the receiver knows of it besides. What
// is new waits for its own message.
func (c *courier) endOf(key string, labels map[string]string, groups map[string]group) group {
	g := group{key: key, labels: c.shared(labels), reason: reasonOver}
	for _, i := range groups[key].told {
		if told := c.told[i.ID]; told.State == "" || !told.State.Open() {
			continue
		}
		g.told = append(g.told, i)
		if i.State.Open() {
			g.reason = reasonResolved
		}
	}
	return g
}

// labelsSent returns the labels under which the receiver knows an incident as open, nil if it does
// not.
func (c *courier) labelsSent(i *incident.Incident) map[string]string {
	told := c.told[i.ID]
	if told.State == "" || !told.State.Open() || told.Severity == "" {
		return nil
	}
	was := *i
	was.Cause, was.Cluster, was.Shard = told.Cause, told.Cluster, told.Shard
	labels := labelsOf(&was)
	labels["severity"] = told.Severity
	if maps.Equal(labels, c.ended[i.ID]) {
		return nil
	}
	return labels
}

// relabelled reports whether the log has other labels of a group that only goes on.
func (c *courier) relabelled(g *group) bool {
	return slices.ContainsFunc(g.told, func(i *incident.Incident) bool {
		told := c.told[i.ID]
		return told.Cluster != i.Cluster || told.Shard != i.Shard
	})
}

func (d *Dispatcher) ended(e end) receiver.Alert {
	a := d.alert(e.Incident)
	a.Labels, a.EndsAt = e.labels, e.at
	if e.State.Open() {
		a.Annotations[receiver.AnnotationDescription] = "goes on under other labels; " + a.Annotations[receiver.AnnotationDescription]
	}
	return a
}
