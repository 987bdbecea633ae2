package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// Release implements lockengine.Engine.
func (e *engine) Release(ctx context.Context, r lockengine.Request) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	gone, err := e.deleteIf(ctx, "release", r.Key, clientv3.Compare(clientv3.Value(e.name(r.Key)), "=", r.Owner))
	if err != nil {
		return err
	}
	e.holds.Remove(holds.Hold{Key: r.Key, Owner: r.Owner})
	if !gone {
		return lockengine.ErrNotHeld
	}
	return nil
}

// deleteIf deletes a lock if all comparisons hold, and reports whether it did.
func (e *engine) deleteIf(ctx context.Context, what, key string, are ...clientv3.Cmp) (bool, error) {
	c := newCall(ctx)
	res, err := e.kv.Txn(c.ctx).If(are...).Then(clientv3.OpDelete(e.name(key))).Commit()
	if err != nil {
		return false, c.err(what, err)
	}
	return res.Succeeded, nil
}

// deleteTimeout is how long etcd has to delete a lock that was not renewed.
const deleteTimeout = 5 * time.Second

// deleteUnrenewed deletes a lock that was not renewed for a ttl, unless the lock was written after
// w.
func (e *engine) deleteUnrenewed(h holds.Hold, w written) {
	if e.enter() != nil {
		return
	}
	defer e.running.Done()
	ctx, cancel := context.WithTimeout(e.ctx, deleteTimeout)
	defer cancel()
	name := e.name(h.Key) // a restore of a backup lets revisions return, so the owner is compared, too
	err := background.Do(e.cfg.Logger, "etcdlock: delete a lock that was not renewed", func() error {
		_, err := e.deleteIf(ctx, "delete", h.Key, clientv3.Compare(clientv3.ModRevision(name), "=", w.revision), clientv3.Compare(clientv3.Value(name), "=", h.Owner))
		return err
	})
	if err == nil {
		e.holds.Remove(h)
		return
	}
	if e.holds.Retry(h) {
		e.cfg.Logger.Warn("etcdlock: a lock that was not renewed can't be deleted yet; it is tried again", "key", h.Key, "owner", h.Owner, "error", err)
	}
}
