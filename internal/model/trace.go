package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Trace holds a run of the code against the model: it keeps the states that the model may
// be in, given what was seen of callers who share their keys.
type Trace struct {
	Covered Covered

	cfg    *Config
	rules  rules
	states reached
	seen   []string
}

// A reached is a set of states, with the actions that were taken unseen on the way there.
type reached map[State]taken

func (r reached) add(s State, path taken) {
	path.add(r[s])
	r[s] = path
}

// taken has a bit for each action.
type taken [2]uint64

func (t *taken) set(k int)      { t[k/64] |= 1 << (k % 64) }
func (t *taken) has(k int) bool { return t[k/64]&(1<<(k%64)) != 0 }
func (t *taken) add(other taken) {
	t[0], t[1] = t[0]|other[0], t[1]|other[1]
}

// plenty is a budget of faults: what has failed was seen.
const plenty = 200

// NewTrace begins where a configuration begins. Of its budget it matters only whether there
// are crashes: then a commit is on the disk once it was [Flushed].
func NewTrace(cfg *Config) *Trace {
	s := start(cfg)
	s.Left = Budget{Lose: plenty, Lapse: plenty, Mute: plenty, Cut: plenty, Deadlock: plenty, Kill: plenty, Crash: plenty, Late: plenty, Hang: plenty, Outage: plenty}
	t := &Trace{cfg: cfg, rules: oneKey, states: reached{s: {}}, Covered: NewCovered()}
	if cfg.several() {
		t.rules = severalKeys
	}
	return t
}

// See takes in the next step. The error is a step that the model cannot take, with what led
// there, and what the model could do instead.
func (t *Trace) See(x Seen) error {
	before, after := t.closure(), make(reached)
	l := t.rules.labels[x.What]
	names := l.names(x.Key)
	for s, path := range before {
		for k := range t.rules.actions {
			if slices.Contains(names, t.rules.actions[k].says) {
				t.take(s, path, k, x, after)
			}
		}
		if l.idle != nil && l.idle(t.cfg, x, &s) {
			after.add(s, path)
			t.Covered.idle(x, t.at(&s, x.Who), t.rules)
		}
	}
	if len(after) == 0 {
		return t.impossible(x, before)
	}
	t.states = make(reached, len(after))
	for s, path := range after {
		t.Covered.take(path, t.rules)
		t.states[s] = taken{}
	}
	t.seen = append(t.seen, x.String())
	return nil
}

// at is where a caller is.
func (t *Trace) at(s *State, i int) pc {
	if t.cfg.several() {
		return s.Several.Calls[i].PC
	}
	return s.Callers[i].PC
}

// take adds what action k leads to, if it is what was seen.
func (t *Trace) take(s State, path taken, k int, x Seen, to reached) {
	after, ok := t.step(s, k, x.Who)
	l := t.rules.labels[x.What]
	if !ok || l.fits != nil && !l.fits(t.cfg, x, &s, &after) {
		return
	}
	path.set(k)
	to.add(after, path)
}

// step returns the state behind action k of caller i.
func (t *Trace) step(s State, k, i int) (State, bool) {
	a := &t.rules.actions[k]
	if t.cfg.Callers[i] == nobody || a.at != anywhere && s.Callers[i].PC != a.at || !a.do(t.cfg, &s, i) {
		return s, false
	}
	s.deliver(t.cfg)
	s.settle()
	return s, true
}

// closure returns the states that the model may have come to without a step that is seen.
func (t *Trace) closure() reached {
	all := maps.Clone(t.states)
	for next := t.states; len(next) > 0; {
		from := next
		next = make(reached)
		for s, path := range from {
			t.hide(s, path, all, next)
		}
	}
	return all
}

// hide adds what is one unseen action behind a state.
func (t *Trace) hide(s State, path taken, all, next reached) {
	for k := range t.rules.actions {
		may := t.rules.unseen[t.rules.actions[k].says]
		if may == nil {
			continue
		}
		for i := range callers {
			after, ok := t.step(s, k, i)
			if _, known := all[after]; !ok || known || !may(t.cfg, &s, &after, i) {
				continue
			}
			path := path
			path.set(k)
			all.add(after, path)
			next.add(after, path)
		}
	}
}

// impossible describes a step that the model cannot take, and what it could do instead.
func (t *Trace) impossible(x Seen, before reached) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no behaviour of the model in %q: %s\n", t.cfg.Name, x)
	for n, seen := range t.seen {
		fmt.Fprintf(&b, "%4d  %s\n", n+1, seen)
	}
	fmt.Fprintf(&b, "   !  %s\nThe model could do instead:\n", x)
	could := make(map[string]bool)
	for s := range before {
		for k := range t.rules.actions {
			for i := range callers {
				if after, ok := t.step(s, k, i); ok {
					could[tell(t.cfg, Step{uint8(k), uint8(i)}, &s, &after)] = true
				}
			}
		}
		could[t.where(&s)] = true
	}
	for _, line := range slices.Sorted(maps.Keys(could)) {
		fmt.Fprintf(&b, "      %s\n", line)
	}
	return fmt.Errorf("%s", strings.TrimRight(b.String(), "\n"))
}

// where says what each caller does in a state, and what it would return.
func (t *Trace) where(s *State) string {
	if t.cfg.several() {
		return s.Several.where()
	}
	parts := []string{"where"}
	for i := range callers {
		if c := &s.Callers[i]; t.cfg.Callers[i] != nobody {
			parts = append(parts, fmt.Sprintf("%s: %s, %s;", names[i], pcNames[c.PC], resultNames[c.Res]))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("holder %d, version %d", s.Holder, s.Row.Version)), " ")
}

func (v *several) where() string {
	var text strings.Builder
	for i := range v.Calls {
		c := &v.Calls[i]
		fmt.Fprintf(&text, " %s: %s, %s, has %b, lost %b;", names[i], pcNames[c.PC], resultNames[c.Res], c.Held, c.Lost)
	}
	return fmt.Sprintf("where%s holders %d, versions %d and %d", &text, v.Holder, v.Rows[0].Version, v.Rows[1].Version)
}
