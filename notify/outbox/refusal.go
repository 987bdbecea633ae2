package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
	"github.com/belaygo/belay/internal/wait"
)

const (
	minRefusal = time.Minute // is added to maxPause: Close does not try these rows again
	maxRefusal = 10*time.Minute - maxPause

	refusalInterval = 10 * time.Minute // between log lines about one service
)

// refusals maps a service to the time when its last refusal was logged.
type refusals map[string]time.Time

// due reports whether a refusal of the service is to be logged now.
func (r *refusals) due(service string) bool {
	if *r == nil {
		*r = make(refusals)
	}
	if at, ok := (*r)[service]; ok && time.Since(at) < refusalInterval {
		return false
	}
	(*r)[service] = time.Now()
	return true
}

// refuse postpones a row that the destination refuses. The rows behind it are published at once,
// because the publisher works.
func (r *relay) refuse(ctx context.Context, stored row, reason error) error {
	if err := r.postpone(ctx, stored, maxPause+wait.After(stored.attempts, minRefusal, maxRefusal)); err != nil {
		return fmt.Errorf("%w: %w", err, reason)
	}
	r.metrics.refused.Inc()
	if service := serviceOf(stored.body); r.refusals.due(service) {
		r.cfg.Logger.Warn("events of a service are refused; they stay in belay_outbox and are tried again within 10 minutes", "service", service, "event_id", stored.eventID, "error", reason)
	}
	return nil
}

// serviceOf returns the service of a stored event, "" if it cannot be read.
func serviceOf(body []byte) string {
	env, _ := cloudevent.Open[struct {
		Service string `json:"service"`
	}](body, cloudevent.Event)
	return env.Data.Service
}
