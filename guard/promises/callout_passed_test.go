package promises_test

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/requestkey"
	"github.com/belaygo/belay/internal/teststack"
)

// Part of the question whether a server of MySQL takes writes, and another one of the same length. A server
// answers the other one as one that takes none.
const whetherWriter, whetherHost = "IN ('read_only',", "IN ('hostname' ,"

// TestReservationIsPassedOn: the COMMIT of a reservation does not arrive, and its process learns that when
// the lease has passed. Another one may have had the request since: unless the database shows that nobody
// had it, the outcome is unknown. A server that takes no writes shows nothing, as it may be behind.
func TestReservationIsPassedOn(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		for _, tt := range []struct {
			name, inserts string
			demoted       bool
			unknown       bool
		}{
			{name: "to nobody"},
			{name: "to a process that calls", inserts: "INSERT INTO belay_pending (attempt, request, print, operation) VALUES (1, ?, 'p', 'take')", unknown: true},
			{name: "to a process that has settled it", inserts: "INSERT INTO belay_once (attempt, request, print, operation, held) VALUES (1, ?, 'p', 'take', 0)", unknown: true},
			{name: "the server takes no writes", demoted: true, unknown: true},
		} {
			if tt.demoted && name != "mysql" { // its question is a prepared statement
				continue
			}
			t.Run(name+", "+tt.name, func(t *testing.T) {
				t.Parallel()
				e, k := payingOver(t, dsn(t))
				request := printed("a")
				sum := requestkey.Sum(request.Operation, request.Scope, request.ID)
				var looks atomic.Bool
				stop := k.Interrupt(func(packet []byte) {
					if bytes.Contains(packet, []byte("SELECT request FROM belay_pending")) && looks.CompareAndSwap(false, true) && tt.inserts != "" {
						wantNil(t, e.db.Exec(tt.inserts, sum[:]).Error)
					}
					if i := bytes.Index(packet, []byte(whetherWriter)); i >= 0 && looks.Load() && tt.demoted {
						copy(packet[i:], whetherHost)
					}
				})
				g := e.through(time.Minute) // for a busy machine
				k.Before.Store(true)
				inside.Of(g).StepClock(time.Hour)
				_, err := e.runBy(g, "a", 5)
				stop()
				k.Before.Store(false)
				if err == nil || errors.Is(err, guard.ErrUnknown) != tt.unknown || !looks.Load() || e.calls != 0 {
					t.Errorf("%d calls, error is %v; want that it is unknown: %v", e.calls, err, tt.unknown)
				}
			})
		}
	}
}
