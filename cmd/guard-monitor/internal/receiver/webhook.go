package receiver

import "context"

// webhook sends what Alertmanager sends to a webhook, in version 4 of that format.
func (r *Receiver) webhook(ctx context.Context, n *Notification) error {
	type webhookAlert struct {
		Status Status `json:"status"`
		*Alert
		Fingerprint string `json:"fingerprint"`
	}
	alerts := make([]webhookAlert, 0, len(n.Alerts))
	var labels, annotations []map[string]string
	for i := range n.Alerts {
		a := &n.Alerts[i]
		labels, annotations = append(labels, a.Labels), append(annotations, a.Annotations)
		alerts = append(alerts, webhookAlert{a.Status(), a, a.Fingerprint()})
	}
	_, err := r.post(ctx, r.cfg.URL, object{
		"version": "4", "groupKey": n.GroupKey, "truncatedAlerts": n.More, "status": n.Status(), "receiver": r.cfg.Name,
		"groupLabels": n.GroupLabels, "commonLabels": common(labels), "commonAnnotations": common(annotations),
		"externalURL": n.ExternalURL, "notification_reason": n.Reason, "alerts": alerts,
	})
	return err
}
