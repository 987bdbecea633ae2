package receiver

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// AlertmanagerRepeat is how often Alertmanager wants to hear of an alert that
// goes on. It takes one for resolved that it has not heard of in holdOpen.
const (
	AlertmanagerRepeat = time.Minute
	holdOpen           = 4 * AlertmanagerRepeat
)

const alertsPath = "/api/v2/alerts"

// maxPosted bounds the alerts of one request: proxies take no more than 1 MB.
const maxPosted = 100

type postedAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// alertmanager posts to the API of Alertmanager. The configured URL is that of
// its start page; the path is added.
func (r *Receiver) alertmanager(ctx context.Context, n *Notification) error {
	alerts := make([]postedAlert, 0, len(n.Alerts))
	for i := range n.Alerts {
		a := &n.Alerts[i]
		posted := postedAlert{
			Labels: a.Labels, Annotations: a.Annotations, GeneratorURL: a.URL,
			StartsAt: a.StartsAt.UTC(), EndsAt: a.EndsAt.UTC(),
		}
		if a.Status() == Firing {
			posted.EndsAt = r.cfg.Now().UTC().Add(holdOpen)
		}
		if posted.StartsAt.After(posted.EndsAt) { // clocks differ, and it would be refused
			posted.StartsAt = posted.EndsAt
		}
		alerts = append(alerts, posted)
	}
	address, err := url.Parse(r.cfg.URL)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(address.Path, alertsPath) {
		address = address.JoinPath(alertsPath)
	}
	return r.postAll(ctx, address.String(), alerts)
}

// postAll posts in parts, none of which waits for another that is refused.
func (r *Receiver) postAll(ctx context.Context, address string, alerts []postedAlert) (refused error) {
	for part := range slices.Chunk(alerts, maxPosted) {
		_, err := r.post(ctx, address, part)
		if no, ok := errors.AsType[*refusal](err); ok && no.permanent {
			refused = err
			continue
		}
		if err != nil {
			return err
		}
	}
	return refused
}
