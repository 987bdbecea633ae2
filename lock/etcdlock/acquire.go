package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// A found lock is what etcd has under its name.
type found struct {
	owner             string
	lease             clientv3.LeaseID
	created, modified int64 // revisions
}

func foundIn(kvs []*mvccpb.KeyValue) *found {
	if len(kvs) == 0 {
		return nil
	}
	kv := kvs[0]
	return &found{string(kv.Value), clientv3.LeaseID(kv.Lease), kv.CreateRevision, kv.ModRevision}
}

// Acquire implements lockengine.Engine: one transaction creates the name if it does not exist. If r.Waits
// is set, Acquire reads the name first, because a refused transaction costs the members as much as
// one that succeeds.
func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if err := checkRequest(r); err != nil {
		return lockengine.Grant{}, err
	}
	if err := lasting.Check("etcdlock", ttl); err != nil {
		return lockengine.Grant{}, err
	}
	if err := e.enter(); err != nil {
		return lockengine.Grant{}, err
	}
	defer e.running.Done()
	if r.Waits {
		f, err := e.look(ctx, r.Key)
		if err != nil {
			return lockengine.Grant{}, unsent("inspect", err)
		}
		if f != nil && f.owner != r.Owner {
			return lockengine.Grant{}, e.heldBy(r.Key, f)
		}
	}
	h := holds.Hold{Key: r.Key, Owner: r.Owner}
	if !e.holds.Begin(h) {
		return lockengine.Grant{}, fmt.Errorf("etcdlock: %w: the lock was not renewed, and is being deleted", lockengine.ErrRefused)
	}
	defer e.holds.Done(h)
	le := e.leases.of(ttl)
	for tries := 0; ; tries++ {
		g, id, err := e.acquire(ctx, r, le)
		if isLeaseLost(err) && tries == 0 { // nothing was executed
			le.drop(id)
			continue
		}
		return g, err
	}
}

// acquire makes one attempt with the lease that it returns.
func (e *engine) acquire(ctx context.Context, r lockengine.Request, le *lease) (lockengine.Grant, clientv3.LeaseID, error) {
	id, err := le.keep(ctx, e.client, le.ttl/4)
	if err != nil {
		return lockengine.Grant{}, id, err
	}
	f, err := e.create(ctx, r, id)
	if err == nil && f.owner == r.Owner && f.lease != id { // it was acquired before
		f, err = e.move(ctx, r, f, id)
	}
	if err == nil && f != nil && f.owner == r.Owner && !le.isCurrent(id) {
		f, err = e.rebind(ctx, r, le, f)
	}
	switch {
	case err != nil:
		if errors.Is(err, lockengine.ErrNoAnswer) {
			le.strays(id)
		}
		return lockengine.Grant{}, id, err
	case f == nil || f.owner != r.Owner:
		return lockengine.Grant{}, id, e.heldBy(r.Key, f)
	}
	hold(e.holds, holds.Hold{Key: r.Key, Owner: r.Owner}, f.modified, le.ttl)
	return lockengine.Grant{Token: f.created * 1024, Place: e.place()}, id, nil
}

// rebind binds a lock that was acquired to the lease that took the place of its own. If it can't,
// the lock is there, so that the caller is to take it back: it got no answer.
func (e *engine) rebind(ctx context.Context, r lockengine.Request, le *lease, f *found) (*found, error) {
	id, err := le.keep(ctx, e.client, le.ttl/4)
	if err == nil {
		f, err = e.move(ctx, r, f, id)
	}
	if err != nil {
		return nil, fmt.Errorf("etcdlock: %w: the lock can't leave its lease: %v", lockengine.ErrNoAnswer, err) //nolint:errorlint // its kind is that of another request
	}
	return f, nil
}

// create writes the lock if nobody has it. It returns the lock that etcd has after that.
func (e *engine) create(ctx context.Context, r lockengine.Request, id clientv3.LeaseID) (*found, error) {
	name := e.name(r.Key)
	c := newCall(ctx)
	res, err := e.kv.Txn(c.ctx).
		If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).
		Then(clientv3.OpPut(name, r.Owner, clientv3.WithLease(id))).
		Else(clientv3.OpGet(name)).
		Commit()
	if err != nil {
		return nil, c.err("acquire", err)
	}
	if res.Succeeded {
		return &found{r.Owner, id, res.Header.Revision, res.Header.Revision}, nil
	}
	return foundIn(res.Responses[0].GetResponseRange().Kvs), nil
}

// move binds a lock to another lease, unless it has changed.
func (e *engine) move(ctx context.Context, r lockengine.Request, f *found, id clientv3.LeaseID) (*found, error) {
	name := e.name(r.Key)
	c := newCall(ctx)
	res, err := e.kv.Txn(c.ctx).
		If(clientv3.Compare(clientv3.ModRevision(name), "=", f.modified)).
		Then(clientv3.OpPut(name, r.Owner, clientv3.WithLease(id))).
		Else(clientv3.OpGet(name)).
		Commit()
	if err != nil {
		return nil, c.err("move", err)
	}
	if res.Succeeded {
		return &found{r.Owner, id, f.created, res.Header.Revision}, nil
	}
	return foundIn(res.Responses[0].GetResponseRange().Kvs), nil
}

func (e *engine) heldBy(key string, f *found) error {
	h := lockengine.Holder{Place: e.place()}
	if f != nil {
		h.Owner = f.owner
	}
	return &lockengine.HeldError{Key: key, Holder: h}
}
