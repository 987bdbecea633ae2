package receiver

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

// Status says whether an alert goes on.
type Status string

// The two statuses, as Alertmanager calls them.
const (
	Firing   Status = "firing"
	Resolved Status = "resolved"
)

// Alert is one incident as a receiver is sent it, in the JSON of Alertmanager.
type Alert struct {
	Labels      map[string]string `json:"labels"`      // what identifies it
	Annotations map[string]string `json:"annotations"` // what else there is to say; see the Annotation constants
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`       // zero while it goes on
	URL         string            `json:"generatorURL"` // its page; empty if there is none
}

// The annotations that chat messages show, in this order.
const (
	AnnotationSummary     = "summary"     // one line
	AnnotationDescription = "description" // what is known: cause, confidence, counts
	AnnotationEvidence    = "evidence"    // the rows that say so, one a line
	AnnotationNext        = "next_step"   // what to do
	AnnotationRunbook     = "runbook_url"
)

// Status returns Resolved for an alert that has ended.
func (a *Alert) Status() Status {
	if a.EndsAt.IsZero() {
		return Firing
	}
	return Resolved
}

// Fingerprint identifies the alert's labels, in the way Prometheus does.
func (a *Alert) Fingerprint() string {
	sum := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		_, _ = sum.Write([]byte(name + "\xff" + a.Labels[name] + "\xff"))
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}

// Notification is a group of alerts in one message.
type Notification struct {
	GroupKey    string
	GroupLabels map[string]string
	Reason      string // why now, in Alertmanager's words
	Alerts      []Alert
	More        int    // alerts of the group that are left out
	Routine     bool   // nothing is wrong: chats show it as OK and mention nobody
	ExternalURL string // the monitor's page; empty if it is not known
}

// Status returns Firing if one of the alerts goes on.
func (n *Notification) Status() Status {
	if n.count(Firing) > 0 {
		return Firing
	}
	return Resolved
}

func (n *Notification) count(s Status) int {
	count := 0
	for i := range n.Alerts {
		if n.Alerts[i].Status() == s {
			count++
		}
	}
	return count
}

// common returns the pairs that are in all maps.
func common(all []map[string]string) map[string]string {
	shared := make(map[string]string)
	for i, m := range all {
		if i == 0 {
			maps.Copy(shared, m)
		}
		maps.DeleteFunc(shared, func(k, v string) bool {
			got, ok := m[k]
			return !ok || got != v
		})
	}
	return shared
}
