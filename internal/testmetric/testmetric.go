// Package testmetric reads metrics in tests.
package testmetric

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Sum returns the sum of the counters or gauges of that name that have the
// labels, given as name, value, name, value. It is NaN where there are none, so
// that no comparison with a name that is wrong holds.
func Sum(tb testing.TB, c prometheus.Collector, name string, labels ...string) float64 {
	tb.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	sum := math.NaN()
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if !has(m, labels) {
				continue
			}
			if math.IsNaN(sum) {
				sum = 0
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func has(m *dto.Metric, labels []string) bool {
	values := make(map[string]string)
	for _, pair := range m.GetLabel() {
		values[pair.GetName()] = pair.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if values[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}
