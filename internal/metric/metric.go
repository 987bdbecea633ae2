// Package metric makes the metrics of a type, which are registered as one collector.
//
//	var f metric.Factory
//	m := metrics{failures: f.Counter("belay_failures_total", "Failures since the start.")}
//	m.Set = f.Set
package metric

import "github.com/prometheus/client_golang/prometheus"

// A Set is metrics that are registered as one. What embeds a Set is a
// prometheus.Collector.
type Set []prometheus.Collector

// Describe implements prometheus.Collector.
func (s Set) Describe(descs chan<- *prometheus.Desc) {
	for _, c := range s {
		c.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (s Set) Collect(samples chan<- prometheus.Metric) {
	for _, c := range s {
		c.Collect(samples)
	}
}

// A Factory makes metrics and adds them to its Set. It is not safe for concurrent use.
type Factory struct {
	Labels prometheus.Labels // of every metric
	Set    Set
}

// Counter returns a new counter.
func (f *Factory) Counter(name, help string) prometheus.Counter {
	return add(f, prometheus.NewCounter(prometheus.CounterOpts(f.opts(name, help))))
}

// CounterVec returns a new counter for each value of the labels.
func (f *Factory) CounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return add(f, prometheus.NewCounterVec(prometheus.CounterOpts(f.opts(name, help)), labels))
}

// Gauge returns a new gauge.
func (f *Factory) Gauge(name, help string) prometheus.Gauge {
	return add(f, prometheus.NewGauge(prometheus.GaugeOpts(f.opts(name, help))))
}

// GaugeVec returns a new gauge for each value of the labels. Without labels it is one
// gauge that can be absent.
func (f *Factory) GaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return add(f, prometheus.NewGaugeVec(prometheus.GaugeOpts(f.opts(name, help)), labels))
}

func (f *Factory) opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Name: name, Help: help, ConstLabels: f.Labels}
}

func add[C prometheus.Collector](f *Factory, c C) C {
	f.Set = append(f.Set, c)
	return c
}
