package lock

import (
	"context"
	"maps"
	"strings"
)

// exorcise releases the lock that is in the way of an acquire by a caller inside
// the key's gate, if this Locker took it and nobody uses it: a retired hold, or
// one that came into being when the Locker had given it up. An engine that stood
// still for longer than the ttl executes an acquire that late. exorcise reports
// whether the engine has answered.
func (l *Locker) exorcise(ctx context.Context, h Hold) bool {
	if !strings.HasPrefix(h.Owner, l.id) {
		return false
	}
	l.mu.Lock()
	r := l.retired.find(h.Owner)
	spared := l.now() < l.spared[h.Owner]
	l.mu.Unlock()
	switch {
	case r != nil:
		return l.releaseRetired(ctx, r)
	case spared:
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.RequestTimeout)
	defer cancel()
	err := l.engine.Release(ctx, h)
	return err == nil || notOurs(err)
}

// spare has exorcise leave the lock of a grant alone until it has expired: its
// lease has ended, but its holder may be at work, or may not know whether its work
// took effect. The caller holds l.mu.
func (l *Locker) spare(g *grant) {
	if !g.local() {
		l.spared[g.hold.Owner] = l.now() + int64(l.cfg.TTL)
	}
}

// sweep forgets whom to spare when the locks have expired. It looks at them once
// in a ttl. The caller holds l.mu.
func (l *Locker) sweep(now int64) {
	if now < l.sweeps {
		return
	}
	l.sweeps = now + int64(l.cfg.TTL)
	maps.DeleteFunc(l.spared, func(_ string, until int64) bool { return now >= until })
}
