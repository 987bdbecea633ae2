package model

import (
	"fmt"
	"slices"
)

// Covered counts the steps of traces.
type Covered struct {
	Taken map[string]int // actions that may have been what was seen, or led there
	Idle  map[string]int // what was seen and is no action of the model, by where its caller was
}

// NewCovered returns one without counts.
func NewCovered() Covered { return Covered{make(map[string]int), make(map[string]int)} }

func (c Covered) take(path taken, r rules) {
	for k := range r.actions {
		if path.has(k) {
			c.Taken[r.of+r.actions[k].says]++
		}
	}
}

func (c Covered) idle(x Seen, at pc, r rules) {
	if x.What != Rests && x.What != Returns { // which are questions
		c.Idle[fmt.Sprintf("%s%s: %s", r.of, x.What, pcNames[at])]++
	}
}

// Add adds the counts of another.
func (c Covered) Add(other Covered) {
	for k, n := range other.Taken {
		c.Taken[k] += n
	}
	for k, n := range other.Idle {
		c.Idle[k] += n
	}
}

// Never returns the actions that no trace took: those that it could have shown, and those for which
// nothing is looked at.
func (c Covered) Never() (missed, blind []string) {
	for _, r := range []rules{oneKey, severalKeys} {
		for _, a := range r.actions {
			switch says := r.of + a.says; {
			case c.Taken[says] > 0 || slices.Contains(missed, says) || slices.Contains(blind, says):
			case r.sighted(a.says):
				missed = append(missed, says)
			default:
				blind = append(blind, says)
			}
		}
	}
	return missed, blind
}

var pcNames = [...]string{
	idle: "not begun", queued: "queued", asking: "asking", denied: "denied", marked: "marked", aboard: "aboard", granted: "granted", hanging: "hanging", looked: "looked", loaded: "loaded",
	writing: "writing", deadlocked: "deadlocked", refused: "refused", working: "working", written: "written", committing: "committing", unknown: "unknown", resolving: "resolving",
	doubting: "doubting", conflicted: "conflicted", closing: "closing", freeing: "freeing", giving: "giving up", reporting: "reporting", returning: "returning", returned: "returned", dead: "dead",
}
