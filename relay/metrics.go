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
	// countTimeout limits how long a scrape waits for the numbers.
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
		age:    desc("belay_relay_oldest_waiting_seconds", "Age of the oldest message whose key has no dead letter, 0 if there is none; that of the 10000th oldest of all, which is no less, if these have dead letters; missing when the table cannot be read."),
		parked: desc("belay_relay_parked_keys", "Keys whose messages wait, since one was not accepted, at most 100000."),
		dead:   desc("belay_relay_dead_keys", "Keys whose messages wait until somebody decides about a dead letter, at most 100000."),
		open:   desc("belay_relay_undecided_keys", "Keys of belay_relay_dead_keys whose dead letter may have taken effect, at most 100000."),
	})
	return m
}

// A backlog collects the metrics of the rows in the tables.
type backlog struct {
	table                                 table
	size, oldest, age, parked, dead, open *prometheus.Desc
}

func (b *backlog) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.size, b.oldest, b.age, b.parked, b.dead, b.open} {
		descs <- d
	}
}

// Collect queries the database, for countTimeout at most.
func (b *backlog) Collect(samples chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	set := func(desc *prometheus.Desc, value float64, err error) {
		if err == nil {
			samples <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
		}
	}
	n, err := b.table.count(ctx, countMessages, maxCounted)
	set(b.size, float64(n), err)
	n, err = b.table.count(ctx, countParked, maxCounted)
	set(b.parked, float64(n), err)
	dead, open, _, err := b.table.dead(ctx, maxCounted)
	set(b.dead, float64(dead), err)
	set(b.open, float64(open), err)
	age, err := b.table.oldestAlive(ctx, dead > 0)
	set(b.age, age.Seconds(), err)
	if at, err := b.table.oldest(ctx); err == nil && !at.IsZero() {
		set(b.oldest, float64(at.UnixMilli())/1000, nil)
	}
}

// oldest returns when the oldest message was stored, the zero time without messages.
func (t table) oldest(ctx context.Context) (time.Time, error) {
	var ms int64
	err := t.get(ctx, "SELECT created_at FROM belay_message ORDER BY id LIMIT 1", nil, &ms)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	return time.UnixMilli(ms), err
}
