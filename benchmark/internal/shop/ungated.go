package shop

import (
	"context"
	"fmt"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

// ungated runs operations without a local gate: callers that run at the same
// time each have a Locker of their own, so each asks Redis.
type ungated struct {
	Closers
	engine   lock.Engine
	db       *gorm.DB
	settings guard.Config

	mu   sync.Mutex
	idle []*guard.Guard
}

func (u *ungated) do(ctx context.Context, key string, op guard.Op) error {
	g, err := u.get()
	if err != nil {
		return err
	}
	defer u.put(g)
	return g.Do(ctx, key, op)
}

func (u *ungated) get() (*guard.Guard, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last := len(u.idle) - 1; last >= 0 {
		g := u.idle[last]
		u.idle = u.idle[:last]
		return g, nil
	}
	locker, err := lock.New(u.engine, lock.Config{Logger: u.settings.Logger})
	if err != nil {
		return nil, fmt.Errorf("make a locker: %w", err)
	}
	u.Later(locker.Close)
	g, err := guard.New(u.db, locker, u.settings)
	if err != nil {
		return nil, err
	}
	u.Later(g.Close)
	return g, nil
}

func (u *ungated) put(g *guard.Guard) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.idle = append(u.idle, g)
}
