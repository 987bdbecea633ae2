package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/guard"
)

// A witness is a setting that docs/guarantees.md excludes, or a blind spot whose data are
// wrong: some schedule must break a promise there, or the text promises too little.
type witness struct {
	name   string
	themes []string // what is done
	set    func(p *plan)
	breaks []string // one of these invariants
}

var witnesses = []witness{
	{"a database that loses commits", []string{"insert", "update"}, func(p *plan) {
		p.also = []action{replace}
	}, []string{"I1", "I2", "I3"}},
	{"a database that executes a COMMIT and answers that it was a deadlock", []string{"insert", "update"}, func(p *plan) {
		p.also = []action{mistake}
	}, []string{"I3"}},
	{"a second node of the database that lags behind", []string{"insert", "update"}, func(p *plan) {
		p.second, p.also = true, []action{lag}
	}, []string{"I6"}},
	{"a row that raw SQL read and wrote without its version", []string{"raw update", "update"}, func(*plan) {},
		[]string{"I2"}},
}

// TestWitnesses: what is not promised does break, and the simulation sees it.
func TestWitnesses(t *testing.T) {
	for _, x := range witnesses {
		t.Run(x.name, func(t *testing.T) {
			for seed := range uint64(4000) {
				p := newPlan(seed)
				p.policy, p.outbox, p.also = guard.FailClosed, false, nil
				for n, callers := range p.work {
					for c, specs := range callers {
						for i := range specs {
							p.work[n][c][i].work = workloadOf(x.themes[(int(seed)+n*c+i)%len(x.themes)])
						}
					}
				}
				x.set(&p)
				if r := simulate(t, p, newDice(p)); broke(r, x.breaks) {
					return
				}
			}
			t.Errorf("%s: no schedule breaks %s", x.name, strings.Join(x.breaks, ", "))
		})
	}
}

func broke(r result, names []string) bool {
	return slices.ContainsFunc(r.problems, func(p string) bool {
		name, _, _ := strings.Cut(p, ":")
		return slices.Contains(names, name)
	})
}
