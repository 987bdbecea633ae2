package model

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Run searches configurations, as many at a time as there are workers. The reports are
// in their order.
func Run(cfgs []*Config, workers int) Reports {
	reports := make(Reports, len(cfgs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				reports[i] = Search(cfgs[i], "")
			}
		})
	}
	for i := range cfgs {
		next <- i
	}
	close(next)
	wg.Wait()
	return reports
}

// Reports are those of a run.
type Reports []Report

// Violations returns what is wrong, with its story: invariants that are broken, and
// blind spots that no configuration meets.
func (rs Reports) Violations() (found []string) {
	for _, r := range rs {
		if r.Violation != nil {
			found = append(found, fmt.Sprintf("%s\n%s", r.Violation, r.Violation.Case()))
		}
	}
	for _, b := range blindspots {
		if !slices.ContainsFunc(rs, func(r Report) bool { return r.Witnesses[b.Name] != nil }) {
			found = append(found, fmt.Sprintf("the blind spot %q is never met: it is named for nothing, or no configuration leads there", b.Name))
		}
	}
	return found
}

// Never returns the actions and results that no configuration has.
func (rs Reports) Never() (names []string) {
	happened := make(map[string]bool)
	for _, r := range rs {
		for says := range r.Happened {
			happened[says] = true
		}
	}
	for _, a := range slices.Concat(actions, pathActions, keyActions) {
		if weak := strings.Contains(a.says, "lacks the last commit") || strings.Contains(a.says, "after the begin"); !weak && !happened[a.says] {
			names = append(names, a.says)
		}
	}
	for _, r := range resultNames[done:] {
		if !happened[r] {
			names = append(names, r)
		}
	}
	return names
}

// String is the last line of `make model`.
func (rs Reports) String() string {
	states := 0
	for _, r := range rs {
		states += r.States
	}
	return fmt.Sprintf("belay model: %d states, %d invariants, %d witnesses, %d violations", states, len(invariants), len(blindspots), len(rs.Violations()))
}

// String is one line.
func (r Report) String() string {
	var met []string
	for _, b := range blindspots {
		if w := r.Witnesses[b.Name]; w != nil {
			met = append(met, fmt.Sprintf("%s in %d", b.Name, len(w.Steps)))
		}
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %d states. %s", r.Config, r.States, strings.Join(met, ", ")))
}
