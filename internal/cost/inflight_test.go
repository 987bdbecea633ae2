package cost_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belaygo/belay/internal/testwait"
)

// TestCallsInFlight: a call of another service holds no connection, so that many more calls than
// connections are in flight, and all are settled. In make cost there are 1,000 of 3 seconds.
func TestCallsInFlight(t *testing.T) {
	callers, connections, work := 100, 16, time.Duration(0)
	if wanted != "" {
		callers, connections, work = 1000, 64, 3*time.Second
	}
	for name, dsn := range each() {
		t.Run(name, func(t *testing.T) {
			to := new(recorder)
			s := open(t, dsn(t), to)
			pool, err := s.db.DB()
			if err != nil {
				t.Fatal(err)
			}
			pool.SetMaxOpenConns(connections)
			pool.SetMaxIdleConns(connections)
			var entered atomic.Int64
			inside, leave := make(chan struct{}), make(chan struct{})
			slow := call
			slow.Timeout = time.Minute
			slow.Do = func(ctx context.Context, _ string, no string) (string, error) {
				if entered.Add(1) == int64(callers) {
					close(inside)
				}
				select {
				case <-leave:
					return no, nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			if err := operations[1].do(t.Context(), s, "first"); err != nil { // looks up the tables
				t.Fatal(err)
			}
			synced, begun := fsyncs(t, s.db), time.Now()
			to.set(true)
			var all errgroup.Group
			for n := range callers {
				all.Go(func() error {
					no := strconv.Itoa(n)
					_, err := slow.Run(t.Context(), s.guard, requestOf(no), no)
					return err
				})
			}
			ended := make(chan error, 1)
			go func() { ended <- all.Wait() }()
			select {
			case <-inside:
				testwait.Until(t, "no call holds a connection", func() bool { return pool.Stats().InUse == 0 })
				<-time.After(work)
				close(leave)
				err = <-ended
			case err = <-ended:
			}
			if err != nil {
				t.Fatal(err)
			}
			c := counts{sent: to.set(false)}
			took := time.Since(begun)
			var orders int64
			if err := s.db.Model(&Order{}).Count(&orders).Error; err != nil || orders != int64(callers)+1 {
				t.Errorf("%d orders, %v, want %d", orders, err, callers+1)
			}
			per := func(n int) string { return fmt.Sprintf("%.1f", float64(n)/float64(callers)) }
			t.Logf("belay cost: %s: %d calls of %v in flight over %d connections, %v in all; a call: %s statements, %s commands, %s fsyncs",
				serverOf(t, s.db), callers, work, connections, took.Round(100*time.Millisecond), per(c.statements()), per(c.commands()), per(fsyncs(t, s.db)-synced))
		})
	}
}
