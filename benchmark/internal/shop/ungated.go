package shop

import (
	"context"
	"sync"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
)

// ungated runs operations without a local gate: callers that run at the same
// time each have a Locker of their own, so each asks Redis.
type ungated struct {
	Closers
	cfg belay.Config

	mu   sync.Mutex
	idle []*guard.Guard
}

func (u *ungated) do(ctx context.Context, key string, op guard.Op) error {
	g, err := u.get(ctx)
	if err != nil {
		return err
	}
	defer u.put(g)
	return g.Do(ctx, key, op)
}

func (u *ungated) get(ctx context.Context) (*guard.Guard, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last := len(u.idle) - 1; last >= 0 {
		g := u.idle[last]
		u.idle = u.idle[:last]
		return g, nil
	}
	b, err := belay.Open(ctx, u.cfg)
	if err != nil {
		return nil, err
	}
	u.Later(b.Close)
	return b.Guard, nil
}

func (u *ungated) put(g *guard.Guard) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.idle = append(u.idle, g)
}
