package sim

import (
	"errors"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/model"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// unserved reports whether the server of the locks is away, or keeps nothing more.
func unserved(err error) bool {
	return errors.Is(err, lockengine.ErrNotSent) || errors.Is(err, lockengine.ErrRefused)
}

// shaken takes in what the server of the locks does from now on.
func (t *tracer) shaken() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := model.NodeBack
	switch s := t.w.server; {
	case s.down:
		now = model.NodeSilent
	case s.full:
		now = model.NodeRefuses
	}
	if now == t.node {
		return
	}
	if t.node != model.NodeBack && now != model.NodeBack { // the model has one after the other
		t.see(model.NodeBack, 0)
	}
	t.node = now
	t.see(now, 0)
}

// outage takes in the report of its begin, or of its end.
func (t *tracer) outage(o *op, ev notify.Event) {
	if ev.Outcome == notify.OutcomeUnknown {
		t.see(model.OutageBegins, o.caller())
		return
	}
	first := firstOf(ev.Instance)
	t.ends[first]++
	t.take(model.Seen{What: model.OutageReported, Who: first, Count: t.ends[first]})
}

// firstOf returns the first caller of a process.
func firstOf(process string) int {
	return slices.IndexFunc(callersOf, func(name string) bool { return strings.HasPrefix(name, process) })
}

// probed takes in that a process in an outage asks whether locks are granted again.
func (t *tracer) probed(c *call, do action) {
	if do != run || c.err != nil {
		t.others["PROBE in vain"]++
		return
	}
	clear(t.denied)
	t.see(model.OutageEnds, firstOf(c.process.name))
}
