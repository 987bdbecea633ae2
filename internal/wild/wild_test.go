package wild

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
)

// TestModelsInTheWild puts every kind through its cases on every database. None is a
// false alarm: an event, or ErrIntercepted, though no lock was lost.
func TestModelsInTheWild(t *testing.T) {
	t.Parallel()
	r := report{cells: make(map[[2]string]counts)}
	t.Cleanup(func() { t.Log(r.String()) }) // when all are done
	for _, k := range slices.Concat(keyKinds, textKinds, indexKinds, writeKinds, associationKinds, databaseKinds, settingKinds) {
		r.kinds = append(r.kinds, k.called())
		t.Run(k.called(), func(t *testing.T) {
			t.Parallel()
			testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
				if database := path.Base(t.Name()); k.has(database) {
					r.add(k.called(), database, k.try(newEnv(t, database, open)))
				}
			})
		})
	}
}

// A tried kind is one of any model.
type tried interface {
	called() string
	has(database string) bool
	try(e *env) counts
}

// counts are the cases of a kind on a database, by how they ended.
type counts struct{ right, refused, blind, alarms, unexplained int }

func (k kind[T]) called() string           { return k.name }
func (k kind[T]) has(database string) bool { return k.on == "" || among(database, k.on) }

func (k kind[T]) try(e *env) (n counts) {
	e = k.prepare(e)
	for _, c := range cases {
		if c.name == "update" && !k.versioned(e) {
			break
		}
		x := k.exception(e.database, c.name)
		before := len(e.Events.All())
		err := k.run(e, c.name)
		events := len(e.Events.All()) - before
		if x.refused != nil {
			n.refuse(e, x, err, events)
			if c.name != "business" {
				break
			}
			continue
		}
		if x.blind != "" {
			c.outcome, c.events = x.blind, x.events
		}
		switch got := string(guard.ResultOf(err)); {
		case got == c.outcome && events == c.events && x.blind != "":
			n.blind++
			e.t.Logf("%s: blind: %s: %s", c.name, got, x.why)
		case got == c.outcome && events == c.events:
			n.right++
		default:
			what := n.miss(events > c.events || got == "intercepted" && c.events == 0)
			e.t.Errorf("%s: %s: %s with %d events, want %s with %d: %v", c.name, what, got, events, c.outcome, c.events, err)
			if c.name == "first" {
				return n
			}
		}
	}
	return n
}

// prepare makes the tables.
func (k kind[T]) prepare(e *env) *env {
	if k.config != nil {
		e = newEnv(e.t, e.database, e.open, k.config(e))
	}
	if k.setup != nil {
		k.setup(e)
	}
	e.must(k.in(e.db).AutoMigrate(new(T)))
	if k.after != nil {
		k.after(e)
	}
	return e
}

func (k kind[T]) exception(database, name string) exception {
	for _, x := range k.except {
		if (x.on == "" || among(database, x.on)) && (x.in == "" || slices.Contains(strings.Fields(x.in), name)) {
			return x
		}
	}
	return exception{}
}

func (n *counts) refuse(e *env, x exception, err error, events int) {
	if errors.Is(err, x.refused) && strings.Contains(err.Error(), x.says) && events == 0 {
		n.refused++
		return
	}
	what := n.miss(events > 0)
	e.t.Errorf("%s: with %d events, want %v that says %q: %v", what, events, x.refused, x.says, err)
}

func (n *counts) miss(alarm bool) string {
	if alarm {
		n.alarms++
		return "false alarm"
	}
	n.unexplained++
	return "unexplained"
}

// A report has a line for each kind and a column for each database.
type report struct {
	kinds, databases []string
	mu               sync.Mutex
	cells            map[[2]string]counts
}

func (r *report) add(kind, database string, n counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.databases, database) {
		r.databases = append(r.databases, database)
	}
	r.cells[[2]string{kind, database}] = n
}

func (r *report) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nkind\t%s\n", strings.Join(r.databases, "\t"))
	sums := make([]counts, len(r.databases))
	for _, kind := range r.kinds {
		fmt.Fprint(w, kind)
		for i, database := range r.databases {
			n := r.cells[[2]string{kind, database}]
			fmt.Fprintf(w, "\t%v", n)
			sums[i].sum(n)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "all")
	var all counts
	for _, n := range sums {
		fmt.Fprintf(w, "\t%v", n)
		all.sum(n)
	}
	w.Flush()
	fmt.Fprintf(&b, "\n%d right, %d refused, %d blind, %d false alarms, %d unexplained", all.right, all.refused, all.blind, all.alarms, all.unexplained)
	return b.String()
}

func (n *counts) sum(m counts) {
	n.right += m.right
	n.refused += m.refused
	n.blind += m.blind
	n.alarms += m.alarms
	n.unexplained += m.unexplained
}

func (n counts) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{n.right, "right"}, {n.refused, "refused"}, {n.blind, "blind"}, {n.alarms, "ALARM"}, {n.unexplained, "UNEXPLAINED"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprint(part.n, " ", part.what))
		}
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, ", ")
}
