package shop

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

// ungated runs operations without a local gate: callers that run at the same
// time each have a Locker of their own, so each asks Redis.
type ungated struct {
	engine   lock.Engine
	db       *gorm.DB
	settings guard.Config

	mu   sync.Mutex
	idle []*alone
}

// alone is a Locker with its guard.
type alone struct {
	locker *lock.Locker
	guard  *guard.Guard
}

func (u *ungated) do(ctx context.Context, key string, op guard.Op) error {
	a, err := u.get()
	if err != nil {
		return err
	}
	defer u.put(a)
	return a.guard.Do(ctx, key, op)
}

func (u *ungated) get() (*alone, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last := len(u.idle) - 1; last >= 0 {
		a := u.idle[last]
		u.idle = u.idle[:last]
		return a, nil
	}
	locker, err := lock.New(u.engine, lock.Config{Logger: u.settings.Logger})
	if err != nil {
		return nil, fmt.Errorf("make a locker: %w", err)
	}
	g, err := guard.New(u.db, locker, u.settings)
	if err != nil {
		return nil, errors.Join(err, locker.Close(context.Background()))
	}
	return &alone{locker, g}, nil
}

func (u *ungated) put(a *alone) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.idle = append(u.idle, a)
}

func (u *ungated) close(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	for _, a := range u.idle {
		errs = append(errs, a.guard.Close(ctx), a.locker.Close(ctx))
	}
	u.idle = nil
	return errors.Join(errs...)
}
