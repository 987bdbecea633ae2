package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/belaygo/belay/internal/wait"
)

// A bench measures on one cluster.
type bench struct {
	addrs      []string
	meter      meter
	warm, span time.Duration // of each measurement
	keys       string        // what all keys of this run begin with
}

// workerLimit is how long a worker may take besides the measurement.
const workerLimit = 50 * time.Second

// measure puts c to w, in worker processes that are new.
func (b *bench) measure(ctx context.Context, c contender, w workload, round int) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, workerLimit+b.warm+c.warm+b.span)
	defer cancel()
	var procs []*process
	defer func() {
		if err != nil {
			err = errors.Join(err, ctx.Err())
			cancel()
		}
		for _, p := range procs {
			p.end()
		}
	}()
	for range w.processes {
		p, err := start(ctx, c, b.addrs)
		if err != nil {
			return r, err
		}
		procs = append(procs, p)
	}
	path, err := newArena()
	if err != nil {
		return r, err
	}
	defer os.Remove(path)

	from := time.Now().Add(b.warm + c.warm)
	j := job{
		Workload: w.job(),
		Key:      fmt.Sprintf("%s:%s:%s:%d:%d", b.keys, c.name, w.name, w.callers, round),
		Callers:  w.callers / w.processes,
		FromUS:   from.UnixMicro(),
		ToUS:     from.Add(b.span).UnixMicro(),
	}
	if w.contended() {
		j.Arena = path
	}
	for i, p := range procs {
		j.First = 1 + i*j.Callers
		if err := p.ask(j); err != nil {
			return r, err
		}
	}
	commands, err := b.commands(ctx, c, j)
	if err != nil {
		return r, err
	}
	outcomes := make([]outcome, len(procs))
	for i, p := range procs {
		if outcomes[i], err = p.answer(); err != nil {
			return r, err
		}
	}
	r = newResult(c, w, outcomes, b.span)
	r.CommandsPerCycle = perCycle(commands, r.cycles)
	if w.contended() {
		shared, err := openArena(path)
		if err != nil {
			return r, err
		}
		defer shared.close()
		r.ExclusionBroken = shared.broken(r.passed)
	}
	return r, nil
}

// commands counts the commands of a job's span.
func (b *bench) commands(ctx context.Context, c contender, j job) (int64, error) {
	if err := wait.Sleep(ctx, time.Until(j.from()), nil); err != nil {
		return 0, err
	}
	before, err := b.meter.total(ctx, c.plain)
	if err != nil {
		return 0, err
	}
	if err := wait.Sleep(ctx, time.Until(j.to()), nil); err != nil {
		return 0, err
	}
	after, err := b.meter.total(ctx, c.plain)
	return after - before, err
}
