package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// Acquire implements lockengine.Engine: one request creates two nodes. If r.Waits is set, Acquire reads
// first, because a refused request costs the servers as much as one that succeeds.
func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if err := checkRequest(r); err != nil {
		return lockengine.Grant{}, err
	}
	if err := lasting.Check("zklock", ttl); err != nil {
		return lockengine.Grant{}, err
	}
	if err := e.enter(); err != nil {
		return lockengine.Grant{}, err
	}
	defer e.running.Done()
	conn, err := e.lasting(ctx, "acquire", ttl)
	if err != nil {
		return lockengine.Grant{}, err
	}
	if r.Waits {
		f, err := e.get(ctx, conn, r.Key)
		if err != nil {
			return lockengine.Grant{}, unsent("read", err)
		}
		if f != nil && f.owner != r.Owner {
			return lockengine.Grant{}, e.heldBy(r.Key, f)
		}
	}
	h := holds.Hold{Key: r.Key, Owner: r.Owner}
	if !e.holds.Begin(h) {
		return lockengine.Grant{}, fmt.Errorf("zklock: acquire: %w: this owner did not renew the lock in time, so it is being deleted", lockengine.ErrRefused)
	}
	defer e.holds.Done(h)
	g, err := e.acquire(ctx, conn, r)
	if err == nil || errors.Is(err, lockengine.ErrNoAnswer) { // the lock may be there, and must end
		if !e.hold(h, conn.session, ttl) && err == nil { // it may have ended with the session
			return lockengine.Grant{}, noAnswer("acquire", errEnded)
		}
	}
	return g, err
}

// lasting returns a connection of a session that keeps a lock for ttl.
func (e *engine) lasting(ctx context.Context, what string, ttl time.Duration) (*conn, error) {
	conn, err := e.client.lasting(ctx, ttl)
	if _, ok := errors.AsType[*ttlError](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, notSent(what, err)
	}
	return conn, nil
}

// unsent returns the error of a request that comes before the one about the lock, which was then
// not sent.
func unsent(what string, err error) error {
	if errors.Is(err, lockengine.ErrNoAnswer) {
		return fmt.Errorf("zklock: %s: %w: %s", what, lockengine.ErrNotSent, err.Error())
	}
	return err
}

// acquire creates the nodes, and their folder if it is missing.
func (e *engine) acquire(ctx context.Context, conn *conn, r lockengine.Request) (lockengine.Grant, error) {
	for tries := 0; ; tries++ {
		results, i, err := doMulti(ctx, conn, "acquire",
			createEphemeral(e.lockNode(r.Key), r.Owner), createEphemeral(e.ownerNode(r), ""), statOf(e.ownerNode(r)))
		switch {
		case err != nil:
			return lockengine.Grant{}, err
		case i < 0:
			return e.grant(r.Key, results[2].stat), nil
		case results[i].err == errNodeExists:
			return e.acquired(ctx, conn, r)
		case tries > 0:
			return lockengine.Grant{}, rejected("acquire", results[i].err)
		}
		if err := e.createFolder(ctx, conn, r.Key); err != nil {
			return lockengine.Grant{}, err
		}
	}
}

// acquired returns the answer when a node exists already: the owner may have acquired the lock
// before.
func (e *engine) acquired(ctx context.Context, conn *conn, r lockengine.Request) (lockengine.Grant, error) {
	f, err := e.get(ctx, conn, r.Key)
	switch {
	case err != nil:
		if errors.Is(err, lockengine.ErrNoAnswer) {
			return lockengine.Grant{}, err
		}
		return lockengine.Grant{}, noAnswer("acquire", err) // the lock may be the owner's
	case f != nil && f.stat.owner == 0:
		return lockengine.Grant{}, fmt.Errorf("zklock: acquire: %w: the node %s is not ephemeral, so it is no lock of zklock: delete it", lockengine.ErrUnusable, e.lockNode(r.Key))
	case f != nil && f.owner == r.Owner && f.stat.owner == conn.session.id:
		return e.grant(r.Key, f.stat), nil
	}
	return lockengine.Grant{}, e.heldBy(r.Key, f)
}

// grant makes a token of the number of the transaction that created the node.
func (e *engine) grant(key string, s stat) lockengine.Grant {
	return lockengine.Grant{Token: s.created * 1024, Place: e.place(key)}
}

func (e *engine) heldBy(key string, f *found) error {
	h := lockengine.Holder{Place: e.place(key)}
	if f != nil {
		h.Owner = f.owner
	}
	return &lockengine.HeldError{Key: key, Holder: h}
}

// createFolder creates the parents of a key's nodes. They are never deleted.
func (e *engine) createFolder(ctx context.Context, conn *conn, key string) error {
	folder := e.folder(key)
	for at := 1; at <= len(folder); {
		end := strings.IndexByte(folder[at:], '/')
		if end < 0 {
			end = len(folder) - at
		}
		a, err := do(ctx, conn, "create the folder", opCreate, createPersistent(folder[:at+end]))
		if err != nil {
			return unsent("create the folder", err)
		}
		if a.code != 0 && a.code != errNodeExists {
			return unsent("create the folder", rejected("create the folder", a.code))
		}
		at += end + 1
	}
	return nil
}
