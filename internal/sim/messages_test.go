package sim

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// topic is that of all messages.
const topic = "made"

// messages are those that o sends.
func (o *op) messages() []guard.Message {
	if !o.sends || !o.work.sends {
		return nil
	}
	m := guard.Message{Topic: topic, Body: []byte(topic + ":" + o.name)}
	if o.keyed && o.has(o.key) { // else it is the one that the operation was given
		m.Key = o.key
	}
	return []guard.Message{m}
}

// with returns a change of o that sends its messages.
func (o *op) with(c guard.Change) guard.Change {
	for _, m := range o.messages() {
		c = guard.All(c, guard.Send(m))
	}
	return c
}

// send sends the messages of o, behind its writes.
func (o *op) send(ctx context.Context, tx *gorm.DB) error { return o.with(guard.Change{}).Run(ctx, tx) }

// sendsAny reports whether an operation of a plan sends a message.
func (p plan) sendsAny() bool { return p.some(func(s spec) bool { return s.sends && s.work.sends }) }

// some reports whether an operation of a plan is one of those.
func (p plan) some(is func(spec) bool) bool {
	return slices.ContainsFunc(p.work, func(callers [][]spec) bool {
		return slices.ContainsFunc(callers, func(specs []spec) bool { return slices.ContainsFunc(specs, is) })
	})
}
