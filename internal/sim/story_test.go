package sim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/belaygo/belay/guard"
)

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// text is the story of a schedule. Random ids in it are numbered as they appear.
func (r result) text() string {
	seen := make(map[string]string)
	return uuids.ReplaceAllStringFunc(strings.Join(r.story, "\n"), func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("id%d", len(seen)+1)
		}
		return seen[id]
	})
}

// report is what a person reads of a violation that a test has found, by name. TestSim draws its plans by the
// seed alone, and each of the others from a loop of its own.
func (r result) report(test string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks what is promised:\n", r.plan.seed)
	for _, p := range r.problems {
		fmt.Fprintf(&b, "  %s\n", uuids.ReplaceAllString(p, "id"))
	}
	fmt.Fprintf(&b, "%s\n", r.plan)
	fmt.Fprintf(&b, "step      time  what\n%s\n", r.text())
	again := fmt.Sprintf("make sim SEED=%d", r.plan.seed)
	if test != "TestSim" {
		again = "make test PKG=./internal/sim RUN=" + test
	}
	fmt.Fprintf(&b, "again: %s\n", again)
	return b.String()
}

// extras are what an operation has beside its request.
func (s spec) extras() (text string) {
	if s.rest > 0 {
		text = fmt.Sprintf(", after %v", s.rest)
	}
	if s.sends {
		text += ", and sends a message"
		if s.keyed {
			text += " under that key"
		}
		if s.bad {
			text += ", which is rejected"
		}
	}
	return text
}

func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  on %s%s\n", [...]string{"MariaDB", "MariaDB with innodb_snapshot_isolation", "PostgreSQL"}[p.server],
		[...]string{guard.FailClosed: "", guard.DBOnly: ", policy DBOnly"}[p.policy])
	if p.calm > 0 {
		fmt.Fprintf(&b, "  without faults from step %d on, and without %s\n", p.calm, p.lasting)
	}
	if p.relays > 0 {
		fmt.Fprintf(&b, "  with %d relays and %d consumers\n", p.relays, p.consumers)
	}
	for n, callers := range p.work {
		for c, specs := range callers {
			for i, s := range specs {
				fmt.Fprintf(&b, "  p%d%c%d does %s on %s, waits %v%s%s\n", n, 'a'+c, i, s.work.name, s.key, s.wait, s.request, s.extras())
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
