package once_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// fill stores requests, of which the n-th is n hours old, with their answers.
func fill(t *testing.T, db *gorm.DB, requests int) {
	t.Helper()
	ago := map[string]string{
		"mysql":    "CURRENT_TIMESTAMP(6) - INTERVAL ? HOUR",
		"postgres": "clock_timestamp() - make_interval(hours => ?)",
		"sqlite":   "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || ? || ' hours')",
	}[db.Name()]
	for n := range requests {
		request := fmt.Appendf(nil, "%032d", n)
		at := gorm.Expr(ago, n)
		testdb.WantNil(t, db.Table("belay_once").Create(map[string]any{
			"request": request, "attempt": 1, "held": 1, "operation": "test", "created_at": at,
		}).Error)
		testdb.WantNil(t, db.Table("belay_answer").Create(map[string]any{
			"request": request, "refused": 0, "codec": "json", "body": []byte("1"), "created_at": at,
		}).Error)
	}
}

func count(t *testing.T, db *gorm.DB, table string) (n int64) {
	t.Helper()
	testdb.WantNil(t, db.Table(table).Count(&n).Error)
	return n
}

// TestPurger: what is old goes, in batches, by several processes at once, and nothing else.
func TestPurger(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		testdb.WantNil(t, once.Migrate(bg, db))
		fill(t, db, 40)
		for range 2 {
			p, err := once.NewPurger(db, once.PurgerConfig{Keep: 30*time.Hour - time.Minute, KeepAnswers: 10*time.Hour - time.Minute, Batch: 3, Every: time.Second})
			testdb.WantNil(t, err)
			t.Cleanup(func() { testdb.WantNil(t, p.Close(context.Background())) })
		}
		testwait.Until(t, "the old rows are gone", func() bool {
			return count(t, db, "belay_answer") == 10 && count(t, db, "belay_once") == 30
		})
		var oldest []byte
		testdb.WantNil(t, db.Raw("SELECT request FROM belay_once ORDER BY request DESC LIMIT 1").Row().Scan(&oldest))
		if want := fmt.Sprintf("%032d", 29); string(oldest) != want {
			t.Errorf("the oldest that is left is %s, want %s", oldest, want)
		}
	})
}

// TestPurgerMetrics: the age of the oldest rows, and what was deleted.
func TestPurgerMetrics(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		testdb.WantNil(t, once.Migrate(bg, db))
		fill(t, db, 4)
		p, err := once.NewPurger(db, once.PurgerConfig{Keep: 2*time.Hour + 30*time.Minute})
		testdb.WantNil(t, err)
		testwait.Until(t, "the old row is gone, and counted", func() bool {
			return count(t, db, "belay_once") == 3 && testmetric.Sum(t, p, "belay_once_purged_total", "table", "belay_once") > 0
		})
		testdb.WantNil(t, p.Close(bg))
		prometheus.NewPedanticRegistry().MustRegister(p)
		if n := testmetric.Sum(t, p, "belay_once_purged_total", "table", "belay_once"); n != 1 {
			t.Errorf("%v purged, want 1", n)
		}
		if age := testmetric.Sum(t, p, "belay_once_oldest_seconds", "table", "belay_once"); age < 7200 || age > 7500 {
			t.Errorf("the oldest request is %v s old, want two hours", age)
		}
	})
}

// TestPurgerWithoutTables: a failure is counted, said once, and no reason to stop.
func TestPurgerWithoutTables(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		p, err := once.NewPurger(db, once.PurgerConfig{Every: time.Second, Logger: slog.New(slog.DiscardHandler)})
		testdb.WantNil(t, err)
		testwait.Until(t, "a purge fails", func() bool { return testmetric.Sum(t, p, "belay_once_purge_failures_total") > 0 })
		testdb.WantNil(t, once.Migrate(bg, db))
		fill(t, db, 80)
		testwait.Until(t, "the old rows are gone", func() bool { return count(t, db, "belay_once") == 72 })
		testdb.WantNil(t, p.Close(bg))
		testdb.WantNil(t, p.Close(bg))
	})
}

func TestPurgerConfig(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		for _, cfg := range []once.PurgerConfig{
			{Keep: time.Second}, {Keep: -1}, {KeepAnswers: 100 * time.Hour}, {KeepAnswers: -1},
			{Every: time.Millisecond}, {Batch: -1}, {Batch: 1 << 20},
		} {
			if p, err := once.NewPurger(db, cfg); err == nil {
				t.Errorf("%+v: no error", cfg)
				_ = p.Close(bg)
			}
		}
	})
}
