package lock

import (
	"context"
	"maps"
	"strings"

	"github.com/belaygo/belay/lock/lockengine"
)

// reclaim releases a lock that an acquire found under its key, if this Locker took it
// and no caller uses it: an orphan, or one that appeared after the Locker had given it
// up. An engine that hung for longer than the ttl executes an acquire that late.
// reclaim reports whether the engine has answered. The caller is the head of the key's
// queue.
func (l *Locker) reclaim(ctx context.Context, r lockengine.Request) bool {
	if !strings.HasPrefix(r.Owner, l.id) {
		return false
	}
	l.mu.Lock()
	o := l.orphans.find(r.Owner)
	if o == nil && l.now() >= l.protected[r.Owner] {
		o = &orphan{request: r}
		l.orphans.begin(o)
	}
	l.mu.Unlock()
	return o != nil && l.releaseOrphan(ctx, o)
}

// protect keeps reclaim from releasing the lock of a grant until it has expired: its
// lease has ended, but its holder may be at work, or may not know whether its work
// took effect. The caller holds l.mu.
func (l *Locker) protect(g *grant) {
	if !g.isLocal() {
		l.protected[g.owner] = l.now() + int64(l.cfg.TTL)
	}
}

// sweepProtected forgets the protected owners whose locks have expired. It runs once in
// a ttl. The caller holds l.mu.
func (l *Locker) sweepProtected(now int64) {
	if now < l.sweepAt {
		return
	}
	l.sweepAt = now + int64(l.cfg.TTL)
	maps.DeleteFunc(l.protected, func(_ string, until int64) bool { return now >= until })
}
