package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// Release implements lockengine.Engine: one request deletes both nodes, or neither. The owner's node
// exists only as long as the owner has the key, so Release can't delete the lock of another owner.
func (e *engine) Release(ctx context.Context, r lockengine.Request) error {
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

func (e *engine) release(ctx context.Context, conn *conn, r lockengine.Request) error {
	_, i, err := doMulti(ctx, conn, "release", remove(e.ownerNode(r)), remove(e.lockNode(r.Key)))
	if err != nil {
		return err
	}
	e.holds.Remove(holds.Hold{Key: r.Key, Owner: r.Owner})
	if i >= 0 {
		return errNotOurs
	}
	return nil
}

// deleteUnrenewed deletes a lock that was not renewed for its ttl. If that fails, it is tried again
// as long as the session lives.
func (e *engine) deleteUnrenewed(h holds.Hold, _ *session) {
	if e.enter() != nil {
		return
	}
	defer e.running.Done()
	ctx, cancel := context.WithTimeout(e.ctx, 3*time.Second)
	defer cancel()
	err := background.Do(e.cfg.Logger, "zklock: delete a lock that was not renewed", func() error {
		conn, err := e.client.ready(ctx)
		if err != nil {
			return err
		}
		return e.release(ctx, conn, lockengine.Request{Key: h.Key, Owner: h.Owner})
	})
	if err == nil || errors.Is(err, lockengine.ErrNotHeld) {
		return
	}
	if e.holds.Retry(h) {
		e.cfg.Logger.Warn("zklock: a lock that was not renewed can't be deleted yet; it is tried again", "key", h.Key, "owner", h.Owner, "error", err)
	}
}
