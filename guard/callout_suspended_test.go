package guard_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
)

// TestSuspendedHost: the host is suspended between the begin of a lease and the call, or somebody sets
// the wall clock. The monotonic clock stands meanwhile. Behind the lease, or behind Until, nobody calls:
// the request stays pending.
func TestSuspendedHost(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		const hour = time.Hour
		for _, tt := range []struct {
			name             string
			end, until, step time.Duration // end is a quarter of what the lease has beyond Timeout
			calls            int
		}{
			{"behind the lease", 5 * time.Minute, 24 * hour, hour, 0},
			{"behind Until", hour, hour, 2 * hour, 0},
			{"the clock is set back", hour, hour, -24 * hour, 1},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				t.Parallel()
				e, k := payingOver(t, dsn(t))
				g, c := e.through(tt.end), e.buy()
				c.Until = tt.until
				run := func(id string) error {
					_, err := c.Run(bg, g, printed(id, "5"), 5, guard.Also("sku:1", &Stock{ID: 1}))
					return err
				}
				// suspended runs the request, and suspends the host before a statement reaches the database.
				suspended := func(id, statement string) {
					t.Helper()
					before, suspend := e.calls, sync.OnceFunc(func() { g.StepClock(tt.step) })
					stop := k.Interrupt(func(packet []byte) {
						if bytes.Contains(packet, []byte(statement)) {
							suspend()
						}
					})
					err := run(id)
					stop()
					suspend() // at the latest
					g.StepClock(-tt.step)
					if n := e.calls - before; n != tt.calls || errors.Is(err, guard.ErrPending) != (n == 0) {
						t.Errorf("suspended at %q: %d calls, want %d: %v", statement, n, tt.calls, err)
					}
				}
				suspended("a", "UPDATE belay_pending SET since_ms")
				e.fails = errors.New("the provider is dead")
				wantIs(t, run("b"), guard.ErrPending)
				e.fails = nil
				suspended("b", "UPDATE belay_pending SET attempt")
				for _, id := range []string{"a", "b"} {
					wantNil(t, run(id))
				}
				if e.charges != 2 || len(e.pending()) != 0 {
					t.Errorf("%d charges, pending %+v", e.charges, e.pending())
				}
			})
		}
	}
}
