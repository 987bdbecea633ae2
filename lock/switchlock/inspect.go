package switchlock

import (
	"context"

	"github.com/belaygo/belay/lock/lockengine"
)

// Inspect implements lockengine.Engine. While locks move, both engines must answer. A holder that both
// name is returned as the new engine has it, like its grant. If they name two, Inspect returns that
// of the old engine.
func (e *engine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	p, err := e.plan(ctx, 0)
	if err != nil {
		return lockengine.Holder{}, err
	}
	var found lockengine.Holder
	for _, engine := range p.asked {
		h, err := engine.Inspect(ctx, key)
		if err != nil {
			return lockengine.Holder{}, err
		}
		if found.Owner == "" || h.Owner == found.Owner { // the old engine comes first
			found = h
		}
	}
	return found, nil
}

// Ping implements lockengine.Pinger: it returns nil if all engines answer that are needed now. An
// engine that is no Pinger counts as answering.
func (e *engine) Ping(ctx context.Context) error {
	return e.each(ctx, func(engine lockengine.Engine) error {
		if p, ok := engine.(lockengine.Pinger); ok {
			return p.Ping(ctx)
		}
		return nil
	})
}

// Probe implements lockengine.Pinger: it returns nil if all engines that are needed now could grant a
// lock. An engine that is no Pinger only has to answer an Inspect.
func (e *engine) Probe(ctx context.Context, key string) error {
	return e.each(ctx, func(engine lockengine.Engine) error {
		if p, ok := engine.(lockengine.Pinger); ok {
			return p.Probe(ctx, key)
		}
		_, err := engine.Inspect(ctx, key)
		return err
	})
}

// each calls f with each engine that is needed now, until it fails.
func (e *engine) each(ctx context.Context, f func(lockengine.Engine) error) error {
	p, err := e.plan(ctx, 0)
	if err != nil {
		return err
	}
	for _, engine := range p.asked {
		if err := f(engine); err != nil {
			return err
		}
	}
	return nil
}

// Locate implements lockengine.Locator. While locks move, it returns the place in the old engine. If
// that engine is down, which is why locks move, the outage of that place ends with the switch.
func (e *engine) Locate(key string) lockengine.Place {
	v := e.look()
	name := v.known.To
	if v.crosses(e.now()) {
		name = v.known.From
	}
	if l, ok := e.cfg.Engines[name].(lockengine.Locator); ok {
		return l.Locate(key)
	}
	return lockengine.Place{Node: name, Slot: -1}
}
