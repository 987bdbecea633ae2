package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// strayTime is how long the servers have to list the locks of a session and to delete strays.
const strayTime = 3 * time.Second

// deleteStrays deletes the locks of a session that nobody holds. After a restore of a backup, a
// session that goes on has the locks again that it had then, and would keep them for as long as the
// process lives. The connection is not in use yet, so no lock is acquired meanwhile.
func (e *engine) deleteStrays(conn *conn) {
	ctx, cancel := context.WithTimeout(e.ctx, strayTime)
	defer cancel()
	strays, err := e.strays(ctx, conn)
	for _, h := range strays {
		if err == nil {
			err = e.release(ctx, conn, lockengine.Request{Key: h.Key, Owner: h.Owner})
		}
		if errors.Is(err, lockengine.ErrNotHeld) {
			err = nil
		}
	}
	switch {
	case e.ctx.Err() != nil, conn.failed(): // the next connection does it
	case err != nil:
		e.cfg.Logger.Warn("zklock: the session may have locks that nobody holds; they can't be deleted before it has another connection", "error", err)
	case len(strays) > 0:
		e.cfg.Logger.Info("zklock: the session had locks that nobody holds, of acquires without an answer or from a backup; they are deleted", "locks", len(strays))
	}
}

// strays returns the locks of the session that the engine does not know.
func (e *engine) strays(ctx context.Context, conn *conn) ([]holds.Hold, error) {
	listed, err := e.list(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, h := range e.holds.All() {
		if listed[e.ownerNode(lockengine.Request{Key: h.Key, Owner: h.Owner})] {
			delete(listed, e.lockNode(h.Key))
		}
	}
	var strays []holds.Hold
	for node := range listed {
		key, ok := keyOf(node)
		if !ok {
			continue
		}
		f, err := e.get(ctx, conn, key)
		if err != nil {
			return nil, err
		}
		if f != nil && f.stat.owner == conn.session.id {
			strays = append(strays, holds.Hold{Key: key, Owner: f.owner})
		}
	}
	return strays, nil
}

// list returns the nodes of the session. Servers before version 3.6 do not list them.
func (e *engine) list(ctx context.Context, conn *conn) (map[string]bool, error) {
	const parts = "0123456789abcdef" // of the folders, as an answer may have 4 MiB
	answers := make(chan answer, len(parts))
	if err := conn.send(opSync, syncOf(e.cfg.Root), func(answer) {}); err != nil {
		return nil, err
	}
	for _, digit := range parts {
		if err := conn.send(opOwn, own(e.cfg.Root+"/"+string(digit)), func(a answer) { answers <- a }); err != nil {
			return nil, err
		}
	}
	nodes := make(map[string]bool)
	for range parts {
		var a answer
		select {
		case a = <-answers:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case a.lost != nil:
			return nil, a.lost
		case a.code == errUnimplemented:
			continue
		case a.code != 0:
			return nil, a.code
		}
		part, err := paths(a.body)
		if err != nil {
			return nil, err
		}
		for _, node := range part {
			nodes[node] = true
		}
	}
	return nodes, nil
}
