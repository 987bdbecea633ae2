package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/lock"
)

// Release implements lock.Engine: one request deletes both nodes. That of the owner is there
// only as long as the owner has the key, so the lock of another can't be deleted.
func (e *Engine) Release(ctx context.Context, r lock.Request) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	conn, err := e.client.ready(ctx)
	if err != nil {
		return notSent("release", err)
	}
	return e.release(ctx, conn, r)
}

func (e *Engine) release(ctx context.Context, conn *conn, r lock.Request) error {
	_, i, err := doMulti(ctx, conn, "release", remove(e.ownerNode(r)), remove(e.lockNode(r.Key)))
	if err != nil {
		return err
	}
	e.holds.remove(hold{r.Key, r.Owner})
	if i >= 0 {
		return errNotOurs
	}
	return nil
}

// deleteUnrenewed ends a lock that nobody has renewed for its ttl, and tries again as long as
// the session lives.
func (e *Engine) deleteUnrenewed(h hold) {
	if e.enter() != nil {
		return
	}
	defer e.running.Done()
	ctx, cancel := context.WithTimeout(e.ctx, 3*time.Second)
	defer cancel()
	conn, err := e.client.ready(ctx)
	if err == nil {
		err = e.release(ctx, conn, lock.Request{Key: h.key, Owner: h.owner})
	}
	if err == nil || errors.Is(err, lock.ErrNotHeld) || e.ctx.Err() != nil {
		return
	}
	e.cfg.Logger.Warn("zklock: a lock that was not renewed can't be deleted", "key", h.key, "owner", h.owner, "err", err)
	e.holds.retry(h)
}
