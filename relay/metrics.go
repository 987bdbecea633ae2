package relay

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/internal/metric"
)

const (
	// countTimeout limits how long a scrape waits for the numbers of what waits.
	countTimeout = time.Second
	// maxCounted bounds the work of counting.
	maxCounted = 100_000
)

// set is unexported, so that the types that embed it gain methods and no field.
type set = metric.Set

type metrics struct {
	set

	sent, failed, dead prometheus.Counter
	lanes              prometheus.Gauge
}

func newMetrics(name string, t table) *metrics {
	f := metric.Factory{Labels: prometheus.Labels{"name": name}}
	m := &metrics{
		sent:   f.Counter("belay_relay_sent_total", "Messages that their route has accepted."),
		failed: f.Counter("belay_relay_failed_total", "How often a message was not accepted."),
		dead:   f.Counter("belay_relay_dead_total", "Messages that became dead letters."),
		lanes:  f.Gauge("belay_relay_lanes", "Lanes that this relay sends, of 32."),
	}
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, f.Labels) }
	m.set = append(f.Set, &backlog{
		table:  t,
		size:   desc("belay_relay_backlog", "Messages in the table, at most 100000; missing when the table cannot be read."),
		oldest: desc("belay_relay_oldest_message_timestamp_seconds", "When the oldest message in the table was stored; missing when there is none, or the table cannot be read."),
		parked: desc("belay_relay_parked_keys", "Keys whose messages wait, since one was not accepted, at most 100000."),
		dead:   desc("belay_relay_dead_keys", "Keys whose messages wait until somebody decides about a dead letter, at most 100000."),
	})
	return m
}

// A backlog collects the metrics of the rows in the tables.
type backlog struct {
	table                      table
	size, oldest, parked, dead *prometheus.Desc
}

func (b *backlog) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.size, b.oldest, b.parked, b.dead} {
		descs <- d
	}
}

// Collect queries the database, for countTimeout at most.
func (b *backlog) Collect(samples chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	for _, one := range []struct {
		desc  *prometheus.Desc
		query string
	}{
		{b.size, "SELECT COUNT(*) FROM (SELECT id FROM belay_message LIMIT ?) AS counted"},
		{b.parked, "SELECT COUNT(*) FROM (SELECT lane FROM belay_parked LIMIT ?) AS counted"},
		{b.dead, "SELECT COUNT(*) FROM (SELECT lane FROM belay_parked WHERE dead = 1 LIMIT ?) AS counted"},
	} {
		n := 0
		if err := b.table.db.QueryRow(ctx, one.query, []any{maxCounted}, &n); err == nil {
			samples <- prometheus.MustNewConstMetric(one.desc, prometheus.GaugeValue, float64(n))
		}
	}
	if at, err := b.table.oldest(ctx); err == nil && !at.IsZero() {
		samples <- prometheus.MustNewConstMetric(b.oldest, prometheus.GaugeValue, float64(at.UnixMilli())/1000)
	}
}

// oldest returns when the oldest message was stored, the zero time without messages.
func (t table) oldest(ctx context.Context) (time.Time, error) {
	var ms int64
	err := t.db.QueryRow(ctx, "SELECT created_at FROM belay_message ORDER BY id LIMIT 1", nil, &ms)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	return time.UnixMilli(ms), err
}
