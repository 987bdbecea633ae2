package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/internal/background"
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
	news    *news
}

func newHeart(cfg Config, t table, m *metrics) *heart {
	h := &heart{cfg: cfg, table: t, metrics: m, news: newNews(cfg)}
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

// rest returns how long it is until there may be something to do, and an hour at most.
func (h *heart) rest() time.Duration {
	if h.to == nil {
		return time.Hour
	}
	return min(time.Until(h.next), h.news.rest(), time.Hour)
}

// beat sends a heartbeat if it is time for one, or if there is news of a switch. A
// failure is logged at a low level, because the monitor detects a missing heartbeat.
func (h *heart) beat(ctx context.Context) {
	if h.to == nil {
		return
	}
	now, known := time.Now(), h.news.look()
	due := !now.Before(h.next)
	if !due && !h.news.due(now, known) {
		return
	}
	if due {
		h.next = now.Add(h.cfg.HeartbeatInterval)
	}
	beat := heartbeat.Heartbeat{
		ID:       uuid.Must(uuid.NewV7()).String(),
		Service:  h.cfg.Service,
		Instance: h.cfg.Instance,
		At:       now,
		Interval: h.cfg.HeartbeatInterval,
		Switch:   known,
	}
	err := background.Do(h.cfg.Logger, "publish a heartbeat", func() error { return h.send(ctx, beat) })
	h.news.sent(known, err)
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
	beat.Messages, beat.Calls = h.messages(counting), h.calls(counting)
	ctx, cancel = context.WithTimeout(ctx, h.cfg.RelayTimeout)
	defer cancel()
	return h.to.PublishHeartbeat(ctx, beat)
}
