package promises_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

// wantMetrics checks counters and gauges by the metric's name without its
// prefix and the value of its label. Those that are not named are not looked at.
func wantMetrics(tb testing.TB, g *guard.Guard, want map[string]float64) {
	tb.Helper()
	got := metricsOf(tb, g)
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			tb.Errorf("%s is %v, want %v; all: %v", name, v, value, got)
		}
	}
}

// metricsOf returns all values, of a histogram the number of observations.
func metricsOf(tb testing.TB, g *guard.Guard) map[string]float64 {
	tb.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(g); err != nil {
		tb.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	got := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "belay_guard_")
			for _, label := range m.GetLabel() {
				if label.GetName() != "name" {
					name += " " + label.GetValue()
				}
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return got
}

func TestMetrics(t *testing.T) {
	each(t, func(e *env) {
		var log bytes.Buffer
		locker, err := lock.New(e.Engine(), lock.Config{})
		wantNil(e.t, err)
		defer locker.Close(bg)
		g, err := guard.New(e.db, locker, guard.Config{
			Service: "s", Publisher: &e.Events, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		wantNil(e.t, err)
		mail := "secret"
		wantNil(e.t, g.Apply(bg, "k", guard.Insert(&Order{No: "secret", Email: &mail}), guard.Protects(&Order{No: "secret"})))
		wantIs(e.t, g.Apply(bg, "k", guard.Insert(&Order{No: "secret"})), guard.ErrDuplicate)
		e.wantConflict(g.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			return tx.Create(&Order{No: "secret"}).Error
		}))
		for range 2 {
			wantNil(e.t, g.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
				return tx.Exec("UPDATE orders SET amount = 7").Error
			}))
		}
		wantNil(e.t, g.Do(bg, "k", func(context.Context, *gorm.DB) error { e.Forget("k"); return nil }))
		wantIs(e.t, g.Do(bg, "k", func(context.Context, *gorm.DB) error { return errSoldOut }), errSoldOut)
		func() {
			defer func() { _ = recover() }()
			_ = g.Do(bg, "k", func(context.Context, *gorm.DB) error { panic("boom") })
		}()
		wantIs(e.t, g.Do(bg, "{", func(context.Context, *gorm.DB) error { return nil }), lock.ErrInvalidKey)

		wantMetrics(e.t, g, map[string]float64{
			"operations_total done":      4,
			"operations_total duplicate": 1,
			"operations_total conflict":  1,
			"operations_total failed":    2,
			"operations_total panic":     1,
			"operations_total busy":      0,
			"events_total lost":          1,
			"events_total overlap":       0,
			"uncovered_total orders":     2,
			"unjudged_total":             1,
			"unverified_total":           0,
			"retries_total":              0,
			"overtaken_total":            0,
			"without_lock_total":         0,
			"degraded":                   0,
			"lock_seconds":               9,
			"transaction_seconds":        8,
		})
		if n := strings.Count(log.String(), "only the lock guards"); n != 1 {
			e.t.Errorf("the table was logged %d times, want once:\n%s", n, log.String())
		}
		if strings.Contains(log.String(), "secret") {
			e.t.Errorf("the log shows values of rows:\n%s", log.String())
		}

		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(g)
		families, err := registry.Gather()
		wantNil(e.t, err)
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		wantNil(e.t, err)
		for _, p := range problems {
			e.t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}
