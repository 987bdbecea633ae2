package webhook

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/internal/breaker"
	"github.com/belaygo/belay/internal/metric"
)

// set is unexported, so that the types that embed it gain methods and no field.
type set = metric.Set

type metrics struct {
	set

	published *prometheus.CounterVec
}

func newMetrics(name string, b *breaker.Breaker) *metrics {
	f := metric.Factory{Labels: prometheus.Labels{"name": name}}
	m := &metrics{published: f.CounterVec("belay_webhook_published_total", "Events given to Publish, by result.", "result")}
	m.set = append(f.Set, breaker.Gauge(b, "belay_webhook_breaker_state", f.Labels))
	for _, result := range []string{"stored", "rejected", "unauthorized", "busy", "open", "failed"} {
		m.published.WithLabelValues(result)
	}
	return m
}

func (m *metrics) count(err error) { m.published.WithLabelValues(result(err)).Inc() }

func result(err error) string {
	_, busy := errors.AsType[*busyError](err)
	switch {
	case err == nil:
		return "stored"
	case busy:
		return "busy"
	case errors.Is(err, errRejected):
		return "rejected"
	case errors.Is(err, errUnauthorized):
		return "unauthorized"
	case errors.Is(err, errOpen):
		return "open"
	}
	return "failed"
}
