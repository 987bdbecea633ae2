package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/sim/simdb"
)

// A between is a chooser that lets one process reserve a request between the snapshot of another one and
// its reservation. The server of the locks takes none.
type between struct{ full, begun, reserved bool }

func (b *between) next(_ *world, calls []*call) choice {
	if !b.full {
		b.full = true
		return choice{do: fill}
	}
	actor := "p1a0"
	if b.begun {
		actor = "p0a0"
	}
	n := slices.IndexFunc(calls, func(c *call) bool { return c.actor == actor })
	switch {
	case n < 0 || b.reserved:
		return oldest(calls)
	case !b.begun:
		b.begun = strings.Contains(calls[n].text, "WITH CONSISTENT SNAPSHOT")
	case calls[n].pays:
		b.reserved = true
		return oldest(calls)
	}
	return choice{do: run, on: calls[n].label()}
}

// TestReservedMeanwhile: a request that another process has reserved since the snapshot is looked at again,
// and is no row of an old version.
func TestReservedMeanwhile(t *testing.T) {
	pay := spec{work: workloadOf("call: pay"), key: "k", request: request{"r", "a"}}
	p := plan{dialect: "mysql", server: simdb.MariaDBSnapshot, policy: guard.DBOnly, until: untils[1], work: [][][]spec{{{pay}}, {{pay}}}}
	b := &between{}
	r := simulate(t, p, b)
	if !b.reserved || len(r.problems) > 0 || !strings.Contains(r.text(), "p1a0 returned: <nil>") {
		t.Errorf("%v\n%s", r.problems, r.text())
	}
}
