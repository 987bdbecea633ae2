package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

const maxLabel = 200 // bytes

// labelsOf identify an incident: those that are empty are left out.
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

// becauseOf says what each cause means.
var becauseOf = map[incident.Cause]string{
	incident.Failover:        "a Redis failover lost locks",
	incident.Restart:         "a Redis process ended, and its locks with it",
	incident.Eviction:        "Redis evicted keys",
	incident.Flushed:         "FLUSHALL or FLUSHDB emptied a Redis node",
	incident.Deleted:         "locks were removed from Redis",
	incident.Partition:       "a Redis node was cut off or stood still",
	incident.Overrun:         "a holder did not renew its lock in time",
	incident.DegradedPeer:    "an instance worked without locks",
	incident.Bypass:          "somebody wrote without a valid lock",
	incident.Unreachable:     "Redis could not be reached",
	incident.UnknownCommit:   "the database did not answer the COMMIT",
	incident.HeartbeatSilent: "the service no longer reports",
	incident.Unknown:         "locks failed, cause unknown",
}

// summary begins with the effect on data, which people who are woken ask for first.
func summary(i *incident.Incident) string {
	words := cmp.Or(becauseOf[i.Cause], string(i.Cause))
	if effect := headline(i.Effect); effect != "" {
		words = effect + "; " + words
	}
	return text.Line(text.Clip(i.Service, maxLabel)) + ": " + words
}

// headline is the worst of an effect in a few words, "" if there is none to speak of.
func headline(e incident.Effect) string {
	switch {
	case e.Unknown == 1:
		return "look at 1 operation"
	case e.Unknown > 0:
		return fmt.Sprintf("look at these %d operations", e.Unknown)
	case e.Committed > 0:
		return plural(e.Committed, "operation") + " committed without a valid lock"
	case e.Undone+e.Refused > 0:
		return "nothing was changed"
	case e.Without > 0:
		return "the database alone guarded " + plural(e.Without, "operation")
	}
	return ""
}

func (d *Dispatcher) alert(i *incident.Incident) receiver.Alert {
	labels := labelsOf(i)
	a := receiver.Alert{
		Labels:   labels,
		StartsAt: began(i),
		EndsAt:   i.ResolvedAt,
		Annotations: map[string]string{
			receiver.AnnotationSummary:     summary(i),
			receiver.AnnotationDescription: describe(i),
		},
	}
	if rows := evidence(i); rows != "" {
		a.Annotations[receiver.AnnotationEvidence] = rows
	}
	if i.NextStep != "" {
		a.Annotations[receiver.AnnotationNext] = text.Line(i.NextStep)
	}
	if i.DocLink != "" && d.cfg.DocsURL != "" {
		a.Annotations[receiver.AnnotationRunbook] = d.cfg.DocsURL + i.DocLink
	}
	if d.cfg.ExternalURL != "" {
		a.URL = d.cfg.ExternalURL + "/incidents/" + i.ID
	}
	return a
}

// began is when an incident began, by this host's clock where that of the host
// that reported it is ahead.
func began(i *incident.Incident) time.Time {
	if !i.OpenedAt.IsZero() && i.OpenedAt.Before(i.FirstAt) {
		return i.OpenedAt
	}
	return i.FirstAt
}

func describe(i *incident.Incident) string {
	var parts []string
	if effect := i.Effect.String(); effect != "" {
		parts = append(parts, text.Line(effect))
	}
	parts = append(parts, fmt.Sprintf("cause %s, confidence %s, state %s", i.Cause, i.Confidence, i.State))
	if i.Events > 0 {
		parts = append(parts, counts(i))
	}
	if i.Regressed > 0 {
		parts = append(parts, fmt.Sprintf("came back %s", plural(int64(i.Regressed), "time")))
	}
	if i.AckedBy != "" {
		parts = append(parts, "acknowledged by "+text.Line(i.AckedBy))
	}
	if i.MergedInto != "" {
		parts = append(parts, "now part of incident "+text.Line(i.MergedInto))
	}
	return strings.Join(parts, "; ")
}

// counts says how many failures, events and keys there are. What did not fail is
// no failure.
func counts(i *incident.Incident) string {
	words := fmt.Sprintf("%s on %s", plural(i.Events, "event"), plural(i.Keys, "key"))
	if i.Effect.Failures > 0 {
		words = plural(i.Effect.Failures, "failure") + " in " + words
	}
	return words
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func evidence(i *incident.Incident) string {
	rows := make([]string, 0, len(i.Evidence))
	for _, e := range i.Evidence {
		row := e.At.UTC().Format("15:04:05.000 UTC ") + text.Line(e.Text)
		if e.Node != "" && !strings.Contains(e.Text, e.Node) {
			row += " (" + text.Line(e.Node) + ")"
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, "\n")
}

// notification tells a group. What is open comes first, what is critical
// before the rest, and what goes on since the shortest time.
func (d *Dispatcher) notification(g *group, limit int) *receiver.Notification {
	told := slices.Clone(g.told)
	slices.SortStableFunc(told, func(a, b incident.Incident) int {
		return cmp.Or(first(a.State.Open(), b.State.Open()), first(a.Severity() == "critical", b.Severity() == "critical"),
			b.FirstAt.Compare(a.FirstAt), strings.Compare(a.ID, b.ID))
	})
	n := &receiver.Notification{
		GroupKey: g.key, GroupLabels: g.labels, Reason: g.reason, ExternalURL: d.cfg.ExternalURL,
		More: max(len(told)-limit, 0),
	}
	for i := range told[:min(len(told), limit)] {
		n.Alerts = append(n.Alerts, d.alert(&told[i]))
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
