package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// A course is how long each measurement goes on.
type course struct {
	warm, span time.Duration
}

// A bench measures on one cluster.
type bench struct {
	addrs  []string
	meter  *meter
	course course
	keys   string // what all keys of this run begin with
}

// measure puts c to w, in worker processes that are new.
func (b *bench) measure(ctx context.Context, c contender, w workload, round int) (result, error) {
	procs, err := b.start(ctx, c, w.processes)
	defer func() {
		for _, p := range procs {
			p.end()
		}
	}()
	if err != nil {
		return result{}, err
	}
	path, err := newArena()
	if err != nil {
		return result{}, err
	}
	defer os.Remove(path)

	from := time.Now().Add(b.course.warm + c.warm)
	j := job{
		Workload: w.job(),
		Key:      fmt.Sprintf("%s:%s:%s:%d:%d", b.keys, c.name, w.name, w.callers, round),
		Callers:  w.callers / w.processes,
		FromUS:   from.UnixMicro(),
		ToUS:     from.Add(b.course.span).UnixMicro(),
	}
	if w.contended() {
		j.Arena = path
	}
	for i, p := range procs {
		j.First = 1 + i*j.Callers
		if err := p.ask(j); err != nil {
			return result{}, err
		}
	}
	commands, err := b.commands(ctx, c, j)
	if err != nil {
		return result{}, err
	}
	outcomes := make([]outcome, len(procs))
	for i, p := range procs {
		if outcomes[i], err = p.answer(ctx, j); err != nil {
			return result{}, err
		}
	}
	r := newResult(c, w, outcomes, b.course.span)
	r.CommandsPerCycle = perCycle(commands, r.cycles)
	if w.contended() {
		shared, err := openArena(path)
		if err != nil {
			return result{}, err
		}
		defer shared.close()
		r.ExclusionBroken = shared.broken(r.passed)
	}
	return r, nil
}

func (b *bench) start(ctx context.Context, c contender, n int) ([]*process, error) {
	var procs []*process
	for range n {
		p, err := start(ctx, c, b.addrs)
		if err != nil {
			return procs, err
		}
		procs = append(procs, p)
	}
	return procs, nil
}

// commands counts the commands of a job's span.
func (b *bench) commands(ctx context.Context, c contender, j job) (int64, error) {
	if err := sleepUntil(ctx, j.from()); err != nil {
		return 0, err
	}
	before, err := b.meter.total(ctx, c.plain)
	if err != nil {
		return 0, err
	}
	if err := sleepUntil(ctx, j.to()); err != nil {
		return 0, err
	}
	after, err := b.meter.total(ctx, c.plain)
	return after - before, err
}

func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
