package etcdlock

import (
	"context"
	"errors"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// maxOps is how many operations a transaction may have, by etcd's default.
const maxOps = 128

// Renew implements lockengine.Engine: it keeps the lease alive, and then reads the locks. The read shows
// that they were not lost before: an old server may keep a lease alive although it has deleted the
// locks already.
func (e *engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	errs := make([]error, len(rs))
	fail := func(err error) []error {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	if len(rs) == 0 {
		return errs
	}
	if err := lasting.Check("etcdlock", ttl); err != nil {
		return fail(err)
	}
	if err := e.enter(); err != nil {
		return fail(err)
	}
	defer e.running.Done()
	le := e.leases.of(ttl)
	id, err := le.keep(ctx, e.client, 0)
	if err != nil {
		return fail(err)
	}
	done := 0
	for part := range slices.Chunk(rs, maxOps) {
		e.renew(ctx, part, le, id, errs[done:])
		done += len(part)
	}
	return errs
}

// renew renews as many locks as one transaction can read, and sets their errs.
func (e *engine) renew(ctx context.Context, rs []lockengine.Request, le *lease, id clientv3.LeaseID, errs []error) {
	for i, r := range rs {
		h := holds.Hold{Key: r.Key, Owner: r.Owner}
		if !e.holds.Begin(h) {
			errs[i] = lockengine.ErrNotHeld
		} else {
			defer e.holds.Done(h)
		}
	}
	all, err := e.read(ctx, rs)
	if err == nil {
		e.moveAll(ctx, rs, all, le, id, errs)
	}
	for i, r := range rs {
		switch {
		case errs[i] != nil:
		case err != nil:
			errs[i] = err
		default:
			errs[i] = e.renewed(ctx, r, all[i], le, id)
		}
	}
}

// read reads the locks of requests. It returns nil for a lock that nobody has.
func (e *engine) read(ctx context.Context, rs []lockengine.Request) ([]*found, error) {
	var gets []clientv3.Op
	for _, r := range rs {
		gets = append(gets, clientv3.OpGet(e.name(r.Key)))
	}
	c := newCall(ctx)
	res, err := e.kv.Txn(c.ctx).Then(gets...).Commit()
	if err != nil {
		return nil, c.err("renew", err)
	}
	all := make([]*found, len(rs))
	for i := range rs {
		all[i] = foundIn(res.Responses[i].GetResponseRange().Kvs)
	}
	return all, nil
}

// moveAll binds the locks to the lease that are bound to another one, unless one of them has
// changed: then each is moved on its own.
func (e *engine) moveAll(ctx context.Context, rs []lockengine.Request, all []*found, le *lease, id clientv3.LeaseID, errs []error) {
	var these []int
	var same []clientv3.Cmp
	var puts []clientv3.Op
	for i, f := range all {
		if errs[i] == nil && f != nil && f.owner == rs[i].Owner && f.lease != id {
			these = append(these, i)
			same = append(same, clientv3.Compare(clientv3.ModRevision(e.name(rs[i].Key)), "=", f.modified))
			puts = append(puts, clientv3.OpPut(e.name(rs[i].Key), f.owner, clientv3.WithLease(id)))
		}
	}
	if len(these) == 0 {
		return
	}
	c := newCall(ctx)
	res, err := e.kv.Txn(c.ctx).If(same...).Then(puts...).Commit()
	for _, i := range these {
		switch {
		case err != nil:
			errs[i] = unmoved(c.err("move", err), le, id)
		case res.Succeeded:
			all[i].lease, all[i].modified = id, res.Header.Revision
		}
	}
}

// renewed ends the renewal of a lock that was read after the lease was kept alive. If the lock is
// still bound to another lease, renewed moves it to this one.
func (e *engine) renewed(ctx context.Context, r lockengine.Request, f *found, le *lease, id clientv3.LeaseID) (err error) {
	h := holds.Hold{Key: r.Key, Owner: r.Owner}
	if f != nil && f.owner == r.Owner && f.lease != id {
		if f, err = e.move(ctx, r, f, id); err != nil {
			return unmoved(err, le, id)
		}
	}
	if f == nil || f.owner != r.Owner {
		e.holds.Remove(h)
		return lockengine.ErrNotHeld
	}
	hold(e.holds, h, f.modified, le.ttl)
	return nil
}

// unmoved returns the error of a move. Without an answer the lock may be bound to the lease, and has
// another revision than the engine knows, so the engine can't delete it: it ends with the lease.
func unmoved(err error, le *lease, id clientv3.LeaseID) error {
	if errors.Is(err, lockengine.ErrNoAnswer) {
		le.strays(id)
	}
	return err
}
