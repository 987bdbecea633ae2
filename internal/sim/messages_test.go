package sim

import (
	"context"
	"slices"
	"strings"

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
	return []guard.Message{{Topic: topic, Body: []byte(topic + ":" + o.name)}}
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

// messageSchema are the statements for the table that operations write.
func messageSchema(dialect string) []string {
	return slices.DeleteFunc(schemaOf("internal/message", dialect), func(sql string) bool {
		return !strings.Contains(sql, "CREATE TABLE IF NOT EXISTS belay_message (")
	})
}

// checkMessages is S11: a message is committed with its operation, or not at all. Nobody takes one out.
func (w *world) checkMessages() {
	if !w.sends {
		return
	}
	stored := make(map[string]bool)
	for _, r := range w.db.Rows("belay_message") {
		_, name, _ := strings.Cut(r["body"].(string), ":")
		stored[name] = true
	}
	for _, o := range w.history.ops {
		done := slices.ContainsFunc(o.commits, func(k *commit) bool { return !k.lost && (!o.work.calls || o.claims(k.row)) })
		switch {
		case stored[o.name] && !done:
			w.problem("S11: a message of %s (%s) is stored, and it has committed nothing", o, o.work.name)
		case done && o.messages() != nil && !stored[o.name] && !w.sentBefore(o, stored):
			w.problem("S11: %s (%s) has committed, and its message is not stored", o, o.work.name)
		}
	}
}

// sentBefore reports whether another operation has stored the message of the request that o serves: one
// that is there is not stored again.
func (w *world) sentBefore(o *op, stored map[string]bool) bool {
	return slices.ContainsFunc(w.history.ops, func(p *op) bool { return o.id != "" && p.id == o.id && stored[p.name] })
}
