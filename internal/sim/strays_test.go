package sim

import (
	"context"
	"reflect"
	"runtime"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/sim/simdb"
)

// A stray is a goroutine that an operation leaves behind, and that writes a row in its
// transaction.
type stray struct {
	op    *op
	asked int  // how often the connection has asked whether its statement is a read of Belay's own
	sends bool // its statement was admitted
	alone bool // the server has executed that outside of a transaction
}

// Moments of a stray: before its statement, and between the statement's admission and its
// sending.
const (
	begins = "STRAY"
	sends  = "SEND"
)

// straying are the operations that leave a goroutine behind. They insert rows of their own, so
// none waits for another at the database.
func straying() []*workload {
	order := func(name string, refuses bool) *workload {
		w := &workload{name: name, own: []string{"orders"}, picky: refuses, strays: true}
		w.run = func(ctx context.Context, p *process, o *op) error {
			return p.guard.Do(ctx, o.key, func(_ context.Context, tx *gorm.DB) error {
				o.leave(tx)
				if err := tx.Create(&Order{No: o.own}).Error; err != nil {
					return err
				}
				if refuses && !o.first {
					return errRefused
				}
				return nil
			}, guard.Wait(o.wait), guard.Retries(2), guard.Protects(&Order{No: o.own}))
		}
		return w
	}
	return []*workload{order("stray order", false), order("stray order or refusal", true)}
}

// leave starts a stray of o.
func (o *op) leave(tx *gorm.DB) {
	if o.process != nil {
		s := &stray{op: o}
		go s.write(tx)
	}
}

// write is S10: a statement behind the end of its transaction is refused.
func (s *stray) write(tx *gorm.DB) {
	s.pause(begins)
	own := tx.Session(&gorm.Session{NewDB: true, Context: strayContext{context.Background(), s}})
	if err := own.Exec("INSERT INTO notes (op) VALUES (?)", s.op.name).Error; err != nil || !s.alone {
		return
	}
	w := s.op.process.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problem("S10: a goroutine that %s (%s) has left behind has committed its row alone", s.op, s.op.work.name)
}

func (s *stray) pause(moment string) {
	s.op.process.w.gate.pass(&call{process: s.op.process, op: s.op, actor: s.op.name + ".stray", text: moment, ctx: context.Background()})
}

type strayKey struct{}

// A strayContext is the context of a stray. A connection asks it whether a statement is a read
// of Belay's own, before the statement's turn and once it has that. Then it looks whether the
// context ends, and sends the statement. There the stray pauses.
type strayContext struct {
	context.Context
	stray *stray
}

var readerPackage = reflect.TypeFor[reader.Reader]().PkgPath()

func (c strayContext) Value(key any) any {
	switch {
	case key == strayKey{}:
		return c.stray
	case reflect.TypeOf(key).PkgPath() == readerPackage:
		c.stray.asked++
	}
	return c.Context.Value(key)
}

func (c strayContext) Done() <-chan struct{} {
	if c.stray.asked == 2 && !c.stray.sends {
		c.stray.sends = true
		c.stray.pause(sends)
	}
	return nil
}

// sent is the fate of a stray's statement. It runs at once: whoever waited for the connection
// meanwhile would wait for a mutex.
func (s *stray) sent(c simdb.Call) simdb.Fate {
	runtime.Gosched() // the end of the transaction may have ended the statement's context
	if s.op.process.w.gate.isDead(s.op.process) {
		return simdb.CutBefore
	}
	s.alone = c.Commit
	return simdb.Execute
}

// sendable returns the calls without the statements of strays whose connection is in use: they
// wait for a mutex, behind what that executes.
func sendable(calls []*call) []*call {
	return slices.DeleteFunc(calls, func(c *call) bool {
		return c.text == sends && slices.ContainsFunc(calls, func(d *call) bool { return d.db != nil && d.op == c.op })
	})
}

// follow sends the statements that wait behind the end of their transaction.
func (w *world) follow(end *call) {
	if end.text != "COMMIT" && end.text != "ROLLBACK" {
		return
	}
	for _, c := range w.gate.calls() {
		if c.text == sends && c.op == end.op {
			w.tell("%s follows the %s", c.label(), end.text)
			w.gate.decide(c, executed)
			runtime.Gosched() // it waits for the mutex before the end lets go of that
		}
	}
}
