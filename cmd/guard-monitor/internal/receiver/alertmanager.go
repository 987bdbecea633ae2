package receiver

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// AlertmanagerRepeat is how often an alert that goes on is sent to Alertmanager, which
// takes it for resolved after holdOpen without a repeat.
const (
	AlertmanagerRepeat = time.Minute
	holdOpen           = 4 * AlertmanagerRepeat
)

const alertsPath = "/api/v2/alerts"

// maxPosted bounds the alerts of one request: proxies take no more than 1 MB.
const maxPosted = 100

// alertmanager posts to the API of Alertmanager. The configured URL is that of
// its start page; the path is added.
func (r *Receiver) alertmanager(ctx context.Context, n *Notification) error {
	alerts := slices.Clone(n.Alerts)
	for i := range alerts {
		a := &alerts[i]
		if a.Status() == Firing {
			a.EndsAt = r.cfg.Now().UTC().Add(holdOpen)
		}
		if a.StartsAt.After(a.EndsAt) { // clocks differ, and it would be refused
			a.StartsAt = a.EndsAt
		}
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

// postAll posts in parts. A part that is refused does not keep back the others.
func (r *Receiver) postAll(ctx context.Context, address string, alerts []Alert) (refused error) {
	for part := range slices.Chunk(alerts, maxPosted) {
		_, err := r.post(ctx, address, part)
		if no, ok := errors.AsType[*Error](err); ok && no.Permanent {
			refused = err
			continue
		}
		if err != nil {
			return err
		}
	}
	return refused
}
