package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/belaygo/belay/lock"
)

// A plan is what a schedule has beside its choices. It follows from the seed.
type plan struct {
	seed   uint64
	faults int
	work   [][][]spec // of each process, of each caller
}

// A spec is one operation that a caller makes.
type spec struct {
	work *workload
	key  string
	wait time.Duration
}

// An op is one call of the product.
type op struct {
	spec
	name    string
	process *process
	owners  []string
	began   int
	ended   int // 0: its process was killed before
	err     error
	cut     bool // one of its calls was not answered

	attempts []*attempt
	commits  []*commit
	events   []published
}

func (o *op) String() string { return o.name }

// A workload is a kind of operation.
type workload struct {
	name string
	run  func(ctx context.Context, p *process, o *op) error
}

var workloads = []*workload{
	{"hold", hold},
}

// newPlan chooses what is done by whom.
func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed, faults: 1 + r.IntN(5)}
	keys := []string{"k", "l"}[:1+r.IntN(2)]
	for range 2 + r.IntN(2) {
		var callers [][]spec
		for range 1 + r.IntN(2) {
			var specs []spec
			for range 1 + r.IntN(2) {
				specs = append(specs, spec{workloads[r.IntN(len(workloads))], keys[r.IntN(len(keys))], []time.Duration{0, time.Second, 20 * time.Second}[r.IntN(3)]})
			}
			callers = append(callers, specs)
		}
		p.work = append(p.work, callers)
	}
	return p
}

// caller makes operations one after the other.
func (p *process) caller(ops []*op) {
	defer func() {
		p.w.mu.Lock()
		p.w.callers--
		p.w.mu.Unlock()
		p.w.gate.wake()
	}()
	for _, o := range ops {
		ctx := context.WithValue(context.Background(), opKey{}, o)
		if !p.pause(ctx, o, fmt.Sprintf("DO %s %s", o.work.name, o.key)) {
			return
		}
		o.began = p.w.step
		err := o.work.run(ctx, p, o)
		if p.w.gate.isDead(p) {
			return
		}
		o.err = err
		p.w.mu.Lock()
		p.w.returned = append(p.w.returned, o)
		p.w.mu.Unlock()
	}
}

// pause is a moment in which the scheduler may let others go first. It returns false if
// the process was killed.
func (p *process) pause(ctx context.Context, o *op, text string) bool {
	return p.w.gate.pass(&call{process: p, op: o, actor: o.name, text: text, ctx: context.WithoutCancel(ctx)}) == executed
}

// hold is an operation of the first layer alone.
func hold(ctx context.Context, p *process, o *op) error {
	var lease *lock.Lease
	var err error
	if o.wait == 0 {
		lease, err = p.locker.TryAcquire(ctx, o.key)
	} else {
		waited, cancel := context.WithTimeout(ctx, o.wait)
		defer cancel()
		lease, err = p.locker.Acquire(waited, o.key)
	}
	if err != nil {
		return err
	}
	p.pause(ctx, o, "WORK")
	return errors.Join(lease.Err(), lease.Release(ctx))
}
