package quorumlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/belaygo/belay/lock/lockengine"
)

// Inspect implements lockengine.Engine: it returns the owner that has the key at a majority of nodes. The
// zero Owner means that no owner has a majority.
func (e *engine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	if err := e.enter(ctx); err != nil {
		return lockengine.Holder{}, fmt.Errorf("quorumlock: inspect: %w", err)
	}
	defer e.running.Done()
	type seen struct {
		node   int
		holder lockengine.Holder
		err    error
	}
	answers := ask(ctx, e, e.cfg.timeout(), func(ctx context.Context, node int) seen {
		s := seen{node: node}
		s.err = call("inspect", func() (err error) {
			s.holder, err = e.nodes[node].Inspect(ctx, key)
			return err
		})
		return s
	})
	var named []lockengine.Holder
	errs := slices.Repeat([]error{errSilent}, len(e.nodes))
	for open := len(e.nodes); open > 0; open-- {
		select {
		case s := <-answers:
			if errs[s.node] = s.err; s.err == nil {
				named = append(named, s.holder)
			}
		case <-ctx.Done():
			return lockengine.Holder{}, failure(ctx, "inspect", lockengine.ErrNoAnswer, errs)
		}
		holder, n := most(named, e.majority)
		holder.Place = e.place()
		if n >= e.majority {
			return holder, nil
		}
		if _, n := mostNamed(named, e.majority); n+len(e.nodes)-len(named) < e.majority {
			return lockengine.Holder{Place: e.place()}, nil // no owner can have a majority
		}
	}
	return lockengine.Holder{}, failure(ctx, "inspect", unanswered(errs), errs)
}

// unanswered returns the kind of the error if no majority has answered.
func unanswered(errs []error) error {
	failed := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if slices.ContainsFunc(failed, func(err error) bool { return !nothing(err) }) {
		return lockengine.ErrNoAnswer
	}
	return common(failed)
}

// most returns the owner that most of the nodes name, until when it has a majority, and how
// many name it. That nobody has the key counts like an owner.
func most(named []lockengine.Holder, majority int) (lockengine.Holder, int) {
	var by []lockengine.Holder
	for _, h := range named {
		var same []lockengine.Holder
		for _, other := range named {
			if other.Owner == h.Owner {
				same = append(same, other)
			}
		}
		if len(same) > len(by) {
			by = same
		}
	}
	if len(by) == 0 {
		return lockengine.Holder{}, 0
	}
	slices.SortFunc(by, func(a, b lockengine.Holder) int { return cmp.Compare(a.TTL, b.TTL) })
	return by[max(0, len(by)-majority)], len(by)
}

// mostNamed is most without the nodes that say that nobody has the key.
func mostNamed(named []lockengine.Holder, majority int) (lockengine.Holder, int) {
	return most(slices.DeleteFunc(slices.Clone(named), func(h lockengine.Holder) bool { return h.Owner == "" }), majority)
}
