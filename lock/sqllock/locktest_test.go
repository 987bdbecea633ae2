package sqllock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/sqllock"
)

func TestContract(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		locktest.Test(t, func(t *testing.T) locktest.Setup {
			cfg := sqllock.Config{PollFrom: 5 * time.Millisecond, PollTo: 20 * time.Millisecond}
			_, d := openPool(t, dsn)
			dsn := dsn
			if d == sqllock.SQLite { // a file of its own: SQLite lets writers wait in no order
				_, settings, _ := strings.Cut(dsn, "?")
				dsn = newFile(t, settings)
				migrate(t, dsn)
			}
			s := locktest.Setup{
				Other: open(t, dsn, cfg),
				Wakes: true, Marks: true, Tokens: true, Nodes: true, Probes: true,
			}
			if d == sqllock.SQLite {
				s.Engine = open(t, dsn, cfg)
				return s
			}
			link := locktest.NewLink(t, testdb.AddrOf(t, dsn))
			s.Engine, s.Fault = open(t, testdb.By(t, dsn, link.Addr), cfg), link.Fault
			return s
		})
	})
}
