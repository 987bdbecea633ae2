package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/internal/heartbeat"
)

// A heart sends heartbeats past the table: a heartbeat that is late is of no
// use.
type heart struct {
	cfg     Config
	table   table
	metrics *metrics
	to      heartbeat.Publisher // nil: none are sent
	next    time.Time
}

func newHeart(cfg Config, t table, m *metrics) *heart {
	h := &heart{cfg: cfg, table: t, metrics: m}
	to, ok := cfg.Relay.(heartbeat.Publisher)
	switch {
	case cfg.Service == "":
	case ok:
		h.to = to
	case cfg.Relay != nil:
		cfg.Logger.Warn("the relay's publisher sends no heartbeats", "service", cfg.Service)
	}
	return h
}

// rest returns how long it is to the next heartbeat, and an hour at most.
func (h *heart) rest() time.Duration {
	if h.to == nil {
		return time.Hour
	}
	return min(time.Until(h.next), time.Hour)
}

// beat sends a heartbeat if it is time for one. That it cannot is no more than a
// remark: the missing heartbeat is the message.
func (h *heart) beat(ctx context.Context) {
	now := time.Now()
	if h.to == nil || now.Before(h.next) {
		return
	}
	h.next = now.Add(h.cfg.HeartbeatInterval)
	err := h.send(ctx, heartbeat.Heartbeat{
		ID:       uuid.Must(uuid.NewV7()).String(),
		Service:  h.cfg.Service,
		Instance: h.cfg.Instance,
		At:       now,
		Interval: h.cfg.HeartbeatInterval,
	})
	if err != nil {
		h.cfg.Logger.Debug("heartbeat is not sent", "error", err)
		return
	}
	h.metrics.heartbeats.Inc()
}

func (h *heart) send(ctx context.Context, beat heartbeat.Heartbeat) error {
	defer h.cfg.watch("publish heartbeat", countTimeout+h.cfg.RelayTimeout)()
	counting, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	if n, err := h.table.count(counting); err == nil {
		beat.Backlog = n
	}
	ctx, cancel = context.WithTimeout(ctx, h.cfg.RelayTimeout)
	defer cancel()
	return h.to.PublishHeartbeat(ctx, beat)
}
