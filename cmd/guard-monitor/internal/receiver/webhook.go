package receiver

import (
	"context"
	"time"
)

// webhookVersion is the version of Alertmanager's webhook format.
const webhookVersion = "4"

type webhookMessage struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   uint64            `json:"truncatedAlerts"`
	Status            Status            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Reason            string            `json:"notification_reason"`
	Alerts            []webhookAlert    `json:"alerts"`
}

type webhookAlert struct {
	Status       Status            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// webhook sends what Alertmanager sends to a webhook.
func (r *Receiver) webhook(ctx context.Context, n *Notification) error {
	_, err := r.post(ctx, r.cfg.URL, r.webhookMessage(n))
	return err
}

func (r *Receiver) webhookMessage(n *Notification) webhookMessage {
	msg := webhookMessage{
		Version: webhookVersion, GroupKey: n.GroupKey, TruncatedAlerts: uint64(max(n.More, 0)),
		Status: n.Status(), Receiver: r.cfg.Name, Reason: n.Reason,
		GroupLabels: orEmpty(n.GroupLabels), ExternalURL: n.ExternalURL,
		Alerts: make([]webhookAlert, 0, len(n.Alerts)),
	}
	var labels, annotations []map[string]string
	for i := range n.Alerts {
		a := &n.Alerts[i]
		labels, annotations = append(labels, a.Labels), append(annotations, a.Annotations)
		msg.Alerts = append(msg.Alerts, webhookAlert{
			Status: a.Status(), Labels: orEmpty(a.Labels), Annotations: orEmpty(a.Annotations),
			StartsAt: a.StartsAt.UTC(), EndsAt: a.EndsAt.UTC(), GeneratorURL: a.URL, Fingerprint: a.Fingerprint(),
		})
	}
	msg.CommonLabels, msg.CommonAnnotations = common(labels), common(annotations)
	return msg
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
