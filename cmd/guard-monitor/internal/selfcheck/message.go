package selfcheck

import (
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// Reasons to send, and what the log says of them.
const (
	reasonFailed   = "guard-monitor is blind"
	reasonOver     = "guard-monitor is no longer blind"
	reasonSilent   = "not sent" // the end of a failure, to a receiver that does not want it
	reasonWatchdog = "watchdog"
)

const (
	maxError = 300 // bytes of an error
	runbook  = "docs/receivers.md"
)

// report is a failure as a message shows it.
type report struct {
	Part
	since, until time.Time // until is zero while it goes on
	err          error
}

func (c *courier) message(failed, over []report) *receiver.Notification {
	n := &receiver.Notification{
		GroupKey: `{alertname="BelayMonitorBlind"}`, GroupLabels: map[string]string{"alertname": "BelayMonitorBlind"},
		Reason: reasonFailed, ExternalURL: c.cfg.ExternalURL,
	}
	if len(failed) == 0 {
		n.Reason = reasonOver
	}
	for _, r := range append(failed, over...) {
		n.Alerts = append(n.Alerts, c.alert(r))
	}
	return n
}

func (c *courier) alert(r report) receiver.Alert {
	a := receiver.Alert{
		Labels:   map[string]string{"alertname": "BelayMonitorBlind", "part": r.Name, "severity": "critical"},
		StartsAt: r.since, EndsAt: r.until, URL: c.cfg.ExternalURL,
		Annotations: map[string]string{receiver.AnnotationSummary: r.Summary},
	}
	if r.err != nil {
		a.Annotations[receiver.AnnotationDescription] = text.Clip(r.err.Error(), maxError)
	}
	if r.until.IsZero() {
		a.Annotations[receiver.AnnotationNext] = r.Next
	}
	c.link(&a)
	return a
}

func (c *courier) link(a *receiver.Alert) {
	if c.cfg.DocsURL != "" {
		a.Annotations[receiver.AnnotationRunbook] = c.cfg.DocsURL + runbook
	}
}

func (c *courier) watchdogMessage(now time.Time) *receiver.Notification {
	labels := map[string]string{"alertname": "BelayWatchdog", "severity": "none"}
	a := receiver.Alert{
		Labels: labels, StartsAt: now, URL: c.cfg.ExternalURL,
		Annotations: map[string]string{
			receiver.AnnotationSummary:     "guard-monitor works",
			receiver.AnnotationDescription: "The next message of this kind comes in " + c.Watchdog.String() + ". If it does not, guard-monitor is down or blind.",
		},
	}
	c.link(&a)
	return &receiver.Notification{
		GroupKey: `{alertname="BelayWatchdog"}`, GroupLabels: map[string]string{"alertname": "BelayWatchdog"},
		Reason: reasonWatchdog, ExternalURL: c.cfg.ExternalURL, Routine: true, Alerts: []receiver.Alert{a},
	}
}
