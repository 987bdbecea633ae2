package report

import (
	"slices"

	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// loadKind is what the curves of one chart have in common. Inserts and sales are
// different work, so they do not share one.
type loadKind struct {
	sells         bool
	keys, repeats string
	steps         []result.Step
}

// loads sorts the steps by load, in the order in which they were run.
func loads(r *result.Run) (kinds []*loadKind) {
	for _, s := range r.Steps {
		sells := shop.Method(s.Method).Sells()
		at := slices.IndexFunc(kinds, func(k *loadKind) bool {
			return k.sells == sells && k.keys == s.Keys && k.repeats == s.Repeats
		})
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, &loadKind{sells: sells, keys: s.Keys, repeats: s.Repeats})
		}
		kinds[at].steps = append(kinds[at].steps, s)
	}
	return kinds
}

// String names the load.
func (k *loadKind) String() string {
	keys := map[string]string{"hot": "one hot key", "uniform": "uniform keys", "zipf": "Zipf keys"}[k.keys]
	switch {
	case k.sells:
		return "Sales, " + keys
	case k.keys != "uniform":
		return "Inserts, " + keys
	case k.repeats == "at-once":
		return "Inserts, " + keys + ", each wanted by two at once"
	case k.repeats == "sequence":
		return "Inserts, " + keys + ", each repeated after the answer"
	}
	return "Inserts, " + keys + ", none repeated"
}

// methods lists the methods, and users the numbers of users, each once.
func (k *loadKind) methods() (all []string) {
	for _, s := range k.steps {
		if !slices.Contains(all, s.Method) {
			all = append(all, s.Method)
		}
	}
	return all
}

func (k *loadKind) users() (all []int) {
	for _, s := range k.steps {
		all = append(all, s.Concurrency)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// step returns the step of a method with some users, and false if there is none.
func (k *loadKind) step(method string, users int) (result.Step, bool) {
	at := slices.IndexFunc(k.steps, func(s result.Step) bool { return s.Method == method && s.Concurrency == users })
	if at < 0 {
		return result.Step{}, false
	}
	return k.steps[at], true
}
