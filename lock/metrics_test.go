package lock_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/belaygo/belay/lock"
)

// gather returns what a registry has of l, the zeros left out, by the metric's
// name without its prefix and the value of its label.
func gather(tb testing.TB, l *lock.Locker) map[string]float64 {
	tb.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(l); err != nil {
		tb.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "belay_lock_")
			for _, label := range m.GetLabel() {
				if label.GetName() != "name" {
					name += " " + label.GetValue()
				}
			}
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if v != 0 {
				values[name] = v
			}
		}
	}
	return values
}

func wantMetrics(tb testing.TB, l *lock.Locker, want map[string]float64) {
	tb.Helper()
	if got := gather(tb, l); !maps.Equal(got, want) {
		tb.Errorf("metrics are\n%v, want\n%v", got, want)
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		wantMetrics(t, l, map[string]float64{})

		lease := acquire(t, l, "k")
		w := wait(t, l, "k")
		_, _ = l.TryAcquire(t.Context(), "k") // held
		release(t, lease)
		lease = w.got(t)
		pass(renewed)
		engine.onRenew(renewDown)
		pass(renewed)
		engine.onAcquire(engine.answerLost)
		engine.onRelease(releaseDown)
		_, _ = l.TryAcquire(t.Context(), "another key") // failed
		wantMetrics(t, l, map[string]float64{
			"acquires_total granted": 2, "acquires_total held": 1, "acquires_total failed": 1,
			"acquire_seconds": 2, "handovers_total": 1,
			"renewals_total ok": 1, "renewals_total failed": 1,
			"held": 1, "orphans": 1,
		})
		engine.onRelease(nil)
		pass(time.Second)
		release(t, lease)
		wantMetrics(t, l, map[string]float64{
			"acquires_total granted": 2, "acquires_total held": 1, "acquires_total failed": 1,
			"acquire_seconds": 2, "handovers_total": 1,
			"renewals_total ok": 1, "renewals_total failed": 1,
		})
	})
}

func TestLossesAreCountedByReason(t *testing.T) {
	for reason, lose := range map[string]func(*faults, *lock.Locker, *lock.Lease){
		"renewal": func(engine *faults, _ *lock.Locker, _ *lock.Lease) {
			engine.Forget("k")
			pass(renewed)
		},
		"release": func(engine *faults, _ *lock.Locker, lease *lock.Lease) {
			engine.Forget("k")
			_ = lease.Release(context.Background())
		},
		"deadline": func(engine *faults, _ *lock.Locker, _ *lock.Lease) {
			engine.onRenew(renewHangs)
			pass(believed)
		},
		"max_hold": func(*faults, *lock.Locker, *lock.Lease) { pass(2 * ttl) },
		"closed":   func(_ *faults, l *lock.Locker, _ *lock.Lease) { _ = l.Close(endedContext()) },
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl, MaxHold: 2 * ttl})
				lose(engine, l, acquire(t, l, "k"))
				got := gather(t, l)
				lost := make(map[string]float64)
				for name, n := range got {
					if strings.HasPrefix(name, "lost_total") {
						lost[name] = n
					}
				}
				if want := map[string]float64{"lost_total " + reason: 1}; !maps.Equal(lost, want) {
					t.Errorf("losses are %v, want %v", lost, want)
				}
				if got["held"] != 0 {
					t.Errorf("%v locks are held", got["held"])
				}
			})
		})
	}
}

// Several Lockers of one process go into one registry.
func TestMetricsHaveNames(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"", "orders"} {
		registry.MustRegister(newLocker(t, newFaults(), lock.Config{Name: name}))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "belay_lock_held" {
			continue
		}
		var names []string
		for _, m := range family.GetMetric() {
			names = append(names, m.GetLabel()[0].GetValue())
		}
		if want := []string{"lock", "orders"}; !slices.Equal(names, want) {
			t.Errorf("names are %v, want %v", names, want)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}
