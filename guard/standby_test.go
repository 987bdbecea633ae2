package guard_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// TestStandbyCheck: settings by which an acknowledged commit may be lost are worth a warning.
func TestStandbyCheck(t *testing.T) {
	pair := teststack.Standby(t, "check")
	for setting, warns := range map[string]bool{
		"synchronous_commit=on":           false,
		"synchronous_commit=remote_apply": false,
		"synchronous_commit=remote_write": false,
		"synchronous_commit=local":        true,
		"synchronous_commit=off":          true,
	} {
		t.Run(setting, func(t *testing.T) {
			heard := &warned{Interface: logger.Discard}
			db := testdb.OpenPostgres(t, pair.DSN(0)+"&"+setting)
			wantNil(t, dbguard.Install(db))
			wantNil(t, db.AutoMigrate(&Stock{}))
			wantNil(t, dbguard.Check(bg, db.Session(&gorm.Session{Logger: heard}), &Stock{}))
			if heard.of("synchronous_commit") != warns {
				t.Errorf("warned of %q", heard.text)
			}
		})
	}
}

// TestStandbyFailover: the primary dies or stands still under load, and its standby is
// promoted at the same address. Nothing is written twice, nothing that was acknowledged is
// lost, and no lock failure is told.
func TestStandbyFailover(t *testing.T) {
	for _, fault := range []string{"kill", "pause"} {
		t.Run(fault, func(t *testing.T) {
			pair := teststack.Standby(t, "failover")
			address := testdb.NewLink(t, pair.Addr(t, 0))
			db := testdb.OpenPostgres(t, address.Through(t, pair.DSN(0)))
			g := guardtest.New(t, db)
			wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
			wantNil(t, db.Create(&Stock{ID: 1, Left: stockOfLoad}).Error)
			l := &standbyLoad{g: g}
			var callers sync.WaitGroup
			stop := make(chan struct{})
			for caller := range 16 {
				callers.Go(func() { l.run(caller, stop) })
			}
			more := func(n int64) func() bool {
				n += l.done.Load()
				return func() bool { return l.done.Load() >= n }
			}
			testwait.Until(t, "the load is there", more(200))
			began := time.Now()
			pair.Run(t, fault, 0)
			pair.Run(t, "promote", 1)
			address.Lead(pair.Addr(t, 1))
			promoted := time.Since(began)
			testwait.Until(t, "operations go on", more(1))
			back := time.Since(began)
			testwait.Until(t, "all operations go on", more(200))
			close(stop)
			callers.Wait()
			t.Logf("%s: promoted after %v, an operation is done after %v; of %d operations %d failed and %d are unknown; the longest Do took %v",
				fault, promoted.Round(time.Millisecond), back.Round(time.Millisecond), l.calls.Load(), l.failed.Load(), l.unknown.Load(), time.Duration(l.longest.Load()).Round(time.Millisecond))
			after := testdb.OpenPostgres(t, pair.DSN(1))
			var orders int64
			wantNil(t, after.Model(&Order{}).Count(&orders).Error)
			if orders != l.placed.Load() {
				t.Errorf("%d orders are there, %d were placed", orders, l.placed.Load())
			}
			var s Stock
			wantNil(t, after.Take(&s, 1).Error)
			if taken := int64(stockOfLoad - s.Left); taken < l.taken.Load() || taken > l.taken.Load()+l.unsure.Load() {
				t.Errorf("%d were taken, want %d, and up to %d more", taken, l.taken.Load(), l.unsure.Load())
			}
			for _, ev := range g.Events.All() {
				if ev.Verdict != notify.VerdictUnknownCommit {
					t.Errorf("a lock failure was told: %+v", ev)
				}
			}
		})
	}
}

const stockOfLoad = 1_000_000

// standbyLoad is what callers do: each places orders of its own, again until they are placed, and
// all take from one stock.
type standbyLoad struct {
	g *guardtest.Guard

	calls, done, failed, unknown atomic.Int64
	placed, taken, unsure        atomic.Int64
	longest                      atomic.Int64
}

func (l *standbyLoad) run(caller int, stop <-chan struct{}) {
	for n := 0; ; n++ {
		no := fmt.Sprintf("%d-%d", caller, n)
		for {
			err := l.do("order:"+no, guard.Insert(&Order{No: no}))
			if err == nil || errors.Is(err, guard.ErrDuplicate) {
				l.placed.Add(1)
				break
			}
		}
		switch err := l.do("sku:1", guard.Update(&Stock{ID: 1}, take)); {
		case err == nil:
			l.taken.Add(1)
		case errors.Is(err, guard.ErrUnknown):
			l.unsure.Add(1)
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// do does an operation for at most 3 seconds, as a request does that has a deadline.
func (l *standbyLoad) do(key string, change guard.Change) error {
	ctx, cancel := context.WithTimeout(bg, 3*time.Second)
	defer cancel()
	began := time.Now()
	err := l.g.Apply(ctx, key, change, guard.Wait(time.Second))
	took := time.Since(began).Nanoseconds()
	for longest := l.longest.Load(); took > longest && !l.longest.CompareAndSwap(longest, took); longest = l.longest.Load() {
	}
	l.calls.Add(1)
	switch {
	case err == nil:
		l.done.Add(1)
	case errors.Is(err, guard.ErrUnknown):
		l.unknown.Add(1)
	default:
		l.failed.Add(1)
		<-time.After(5 * time.Millisecond) // a caller does not try again at once
	}
	return err
}
