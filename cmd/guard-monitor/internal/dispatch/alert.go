package dispatch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
)

const maxLabel = 200 // bytes

// labelsOf returns the labels that identify an incident, without empty ones.
func labelsOf(i *incident.Incident) map[string]string {
	labels := map[string]string{"alertname": "BelayIncident"}
	for name, value := range map[string]string{
		"service": i.Service, "cause": string(i.Cause), "cluster": i.Cluster, "shard": i.Shard, "severity": i.Severity(),
	} {
		if value != "" {
			labels[name] = text.Line(text.Clip(value, maxLabel))
		}
	}
	return labels
}

func (d *Dispatcher) alert(i *incident.Incident) receiver.Alert {
	labels := labelsOf(i)
	a := receiver.Alert{
		Labels:   labels,
		StartsAt: began(i),
		EndsAt:   i.ResolvedAt,
		Annotations: map[string]string{
			receiver.AnnotationSummary:     words.Summary(labels["service"], i),
			receiver.AnnotationDescription: words.Description(i),
			receiver.AnnotationNext:        words.English.Next(*i),
		},
	}
	if lines := words.EvidenceLines(i); lines != "" {
		a.Annotations[receiver.AnnotationEvidence] = lines
	}
	if i.DocLink != "" && d.cfg.DocsURL != "" {
		a.Annotations[receiver.AnnotationRunbook] = d.cfg.DocsURL + i.DocLink
	}
	if d.cfg.ExternalURL != "" {
		a.URL = d.cfg.ExternalURL + "/incidents/" + i.ID
	}
	return a
}

// began is when an incident began, by this host's clock if the clock of the
// reporting host is ahead, or when it came back.
func began(i *incident.Incident) time.Time {
	if i.Regressed > 0 && !i.OpenedAt.IsZero() {
		return i.OpenedAt
	}
	if !i.OpenedAt.IsZero() && i.OpenedAt.Before(i.FirstAt) {
		return i.OpenedAt
	}
	return i.FirstAt
}

// notification returns the message about a group, with at most limit alerts: open
// incidents first, of these the critical ones, of these the newest.
func (d *Dispatcher) notification(g *group, limit int) *receiver.Notification {
	told := slices.Clone(g.told)
	slices.SortStableFunc(told, func(a, b *incident.Incident) int {
		return cmp.Or(first(a.State.Open(), b.State.Open()), first(a.Severity() == "critical", b.Severity() == "critical"),
			b.FirstAt.Compare(a.FirstAt), strings.Compare(a.ID, b.ID))
	})
	n := &receiver.Notification{
		GroupKey: g.key, GroupLabels: g.labels, Reason: g.reason, ExternalURL: d.cfg.ExternalURL,
		More: max(len(told)+len(g.ends)-limit, 0),
	}
	for _, i := range told[:min(len(told), limit)] {
		n.Alerts = append(n.Alerts, d.alert(i))
	}
	for _, e := range g.ends[:min(len(g.ends), limit-len(n.Alerts))] {
		n.Alerts = append(n.Alerts, d.ended(e))
	}
	return n
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
