package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

// A row is what an operation writes, and the key under which it does: none if it is not
// protected. A claim is under its request's.
type row struct{ name, key string }

// rows are those that o writes.
func (o *op) rows() (all []row) {
	key, other := o.key, o.other()
	if o.work.keyed && !o.work.named {
		key, other = "", ""
	}
	for _, table := range o.work.rows {
		all = append(all, row{rowOf(table, o.key), key})
	}
	for _, table := range o.work.other {
		all = append(all, row{rowOf(table, o.other()), other})
	}
	for _, table := range o.work.own {
		all = append(all, row{table + "/" + o.own, key})
	}
	if o.work.serves {
		all = append(all, row{o.claim(), o.lock()})
	}
	return all
}

// writes reports whether there are rows that w writes.
func (w *workload) writes() bool { return len(w.rows)+len(w.own) > 0 || w.calls }

// rowOf is the name of the row of a table that a key names.
func rowOf(table, key string) string {
	if table == "orders" || table == "labels" {
		return table + "/" + key
	}
	return fmt.Sprintf("%s/%d", table, numberOf(key))
}

// other is the second key of o.
func (o *op) other() string {
	if o.key == "k" {
		return "l"
	}
	return "k"
}

// keys are those whose locks o takes.
func (o *op) keys() []string {
	var all []string
	if o.work.keyed {
		all = append(all, o.lock())
	}
	switch {
	case o.work.keyed && !o.work.named:
		return all
	case o.work.other == nil:
		return append(all, o.key)
	}
	return append(all, "k", "l")
}

func (o *op) has(key string) bool { return slices.Contains(o.keys(), key) }

// writes reports whether o writes a row, under a key that protects it.
func (o *op) writes(name string) bool {
	return slices.ContainsFunc(o.rows(), func(r row) bool { return r.name == name })
}

// keyOf is the key under which o writes a row.
func (o *op) keyOf(name string) string {
	for _, r := range o.rows() {
		if r.name == name && (r.key == "" || o.has(r.key)) {
			return r.key
		}
	}
	return o.key
}

// under returns how many rows o writes under a key.
func (o *op) under(key string) (n int) {
	for _, r := range o.rows() {
		if r.key == key {
			n++
		}
	}
	return n
}

// sent reports whether an argument of a statement shows that o has made its change. It does
// not if the row has had it before.
func (o *op) sent(arg any) bool {
	if slices.ContainsFunc(o.commits, func(k *commit) bool { return !k.lost }) {
		return false
	}
	text, _ := arg.(string)
	return text == o.own && o.work.own != nil || slices.Contains(strings.Fields(text), o.name)
}

// attemptOn returns the newest attempt of o on a connection.
func (o *op) attemptOn(conn string) *attempt {
	for _, a := range slices.Backward(o.attempts) {
		if a.conn == conn {
			return a
		}
	}
	return nil
}

// runners are o, and those who ran a transaction in which its rows were read or written.
func (o *op) runners() []*op {
	all := []*op{o}
	for _, leader := range o.leaders {
		if !slices.Contains(all, leader) {
			all = append(all, leader)
		}
	}
	return all
}

// firstOfLast returns the first of the attempts that o made under the locks of its last one:
// whoever runs alone after a crew acquires the lock again.
func (h *history) firstOfLast(o *op) *attempt {
	if !o.work.combines {
		return o.attempts[0]
	}
	first := o.attempts[len(o.attempts)-1]
	for _, a := range slices.Backward(o.attempts) {
		if a.op != first.op || a.grants[o.key] != first.grants[o.key] || h.passedOn(a, o.key, first.begun) {
			break
		}
		first = a
	}
	return first
}

// passedOn reports whether another operation had the lock of an attempt on a key after it,
// before a step.
func (h *history) passedOn(a *attempt, key string, step int) bool {
	return slices.ContainsFunc(h.ops, func(o *op) bool {
		return o != a.op && slices.ContainsFunc(o.attempts, func(b *attempt) bool {
			return b.op == o && b.grants[key] == a.grants[key] && a.begun < b.begun && b.begun < step
		})
	})
}

// speaksFor reports whether an event of o may be about other, too: they may have shared a
// transaction, perhaps without a sign of that in its statements.
func (o *op) speaksFor(other *op) bool {
	return o == other || o.process == other.process && o.key == other.key && o.work.combines && other.work.combines
}

// unanswered reports whether a request about a key's lock was not answered: o's, or that of
// one whose transaction it shared.
func (o *op) unanswered(word, key string) bool {
	return slices.ContainsFunc(o.runners(), func(r *op) bool { return r.cut[word+" "+key] })
}

// broke is how often the connection broke since the last write.
func (o *op) broke() (n int) {
	for _, r := range o.runners() {
		n = max(n, r.breaks)
	}
	return n
}

// failures are the failed locks that o has reported.
func (o *op) failures() (own []notify.Event) {
	for _, ev := range o.events {
		if slices.Contains(failures, ev.Verdict) {
			own = append(own, ev)
		}
	}
	return own
}

// losses returns how many locks o has reported to have failed.
func (o *op) losses() int {
	owners := make(map[string]bool)
	for _, ev := range o.failures() {
		owners[ev.Owner] = true
	}
	return len(owners)
}

// heard are those and what was reported by one whose transaction o shared.
func (o *op) heard() (all []notify.Event) {
	for _, r := range o.runners() {
		all = append(all, r.failures()...)
	}
	return all
}

var errRefused = errors.New("the change is refused")

// adds is what o adds to a row that names who has changed it.
func (o *op) adds(name string) int64 {
	if o.keyOf(name) == o.key {
		return -1
	}
	return 1
}

// think is a moment in which a change that takes long goes on.
const think = "CHANGE"

// touch changes an account as o does.
func (o *op) touch(left *int, names *string, by int) error {
	if o.work.slow && o.process != nil {
		o.process.pause(context.Background(), o, think)
	}
	if o.work.picky && !o.first {
		return errRefused
	}
	if o.work.panics && o.first {
		panic(errPanic)
	}
	if o.process != nil && o.work.combines {
		o.process.w.gate.trace.changes(o)
	}
	*left += by
	*names += o.name + " "
	return nil
}

func (o *op) account(key string, by int) guard.Change {
	return guard.Update(&Account{ID: numberOf(key)}, func(a *Account) error { return o.touch(&a.Left, &a.Names, by) })
}

func (o *op) purse(key string, by int) guard.Change {
	return guard.Update(&Purse{ID: numberOf(key)}, func(p *Purse) error { return o.touch(&p.Left, &p.Names, by) })
}
