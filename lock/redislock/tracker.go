package redislock

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/wait"
)

const (
	retryTracking  = time.Second // until locks that could not be tracked are tried again
	refusalTime    = time.Minute // until a server is tried again that refuses tracking
	minTrackedTime = 100 * time.Millisecond
)

// A tracker detects when a held lock is deleted or overwritten. It has one trackConn to
// each node with such a lock, whatever the number of locks.
type tracker struct {
	topology *topology
	logger   *slog.Logger
	wakeup   chan struct{} // makes run assign locks
	ctx      context.Context
	close    context.CancelFunc
	wg       sync.WaitGroup

	mu         sync.Mutex
	running    bool
	refused    bool                         // a server has refused tracking, which was logged
	locks      map[string]*tracked          // by name
	conns      map[*redis.Client]*trackConn // by node
	unassigned []*tracked
	later      []*tracked // to be unassigned at the next tick
}

// A tracked is a lock that is held.
type tracked struct {
	name, owner string
	lost        func()

	// Guarded by tracker.mu.
	next    *tracked   // another owner of this name: one of the two has lost it
	conn    *trackConn // nil = none yet
	queued  bool       // to be checked
	known   bool       // the server has had it, and reports its next change
	stopped bool
}

func newTracker(t *topology, logger *slog.Logger) *tracker {
	k := &tracker{
		topology: t,
		logger:   logger,
		wakeup:   make(chan struct{}, 1),
		locks:    make(map[string]*tracked),
		conns:    make(map[*redis.Client]*trackConn),
	}
	k.ctx, k.close = context.WithCancel(context.Background())
	return k
}

// stop ends all goroutines and connections.
func (k *tracker) stop() {
	k.mu.Lock()
	k.close()
	k.mu.Unlock()
	k.wg.Wait()
}

// watch calls lost when owner may have lost the lock.
func (k *tracker) watch(name, owner string, lost func()) (stop func()) {
	l := &tracked{name: name, owner: owner, lost: lost}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return func() {}
	}
	if !k.running {
		k.running = true
		k.wg.Go(k.run)
	}
	l.next = k.locks[name]
	k.locks[name] = l
	k.unassigned = append(k.unassigned, l)
	wait.Wake(k.wakeup)
	return func() { k.unwatch(l) }
}

func (k *tracker) unwatch(l *tracked) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.stopped {
		return
	}
	l.stopped = true
	k.unassign(l)
	first := k.locks[l.name]
	if first == l {
		first = l.next
	}
	for p := first; p != nil; p = p.next {
		if p.next == l {
			p.next = l.next
		}
	}
	if first == nil {
		delete(k.locks, l.name)
	} else {
		k.locks[l.name] = first
	}
}

// unassign takes a lock from its connection. The caller holds k.mu.
func (k *tracker) unassign(l *tracked) {
	if l.conn != nil {
		l.conn.locks--
		l.conn = nil
	}
	l.queued, l.known = false, false
}

// run assigns locks to connections.
func (k *tracker) run() {
	ticker := time.NewTicker(retryTracking)
	defer ticker.Stop()
	for {
		tick := false
		select {
		case <-k.wakeup:
		case <-ticker.C:
			tick = true
		case <-k.ctx.Done():
			return
		}
		_ = background.Do(k.logger, "redislock: track locks", func() error {
			k.assign(tick)
			return nil
		})
	}
}

func (k *tracker) assign(tick bool) {
	for _, l := range k.takeUnassigned(tick) {
		node, err := k.topology.master(k.ctx, l.name)
		k.mu.Lock()
		switch {
		case l.stopped:
		case err != nil:
			k.later = append(k.later, l)
		default:
			l.conn = k.connTo(node)
			l.conn.locks++
			l.conn.enqueue(l)
		}
		k.mu.Unlock()
	}
}

// takeUnassigned returns the locks without a connection. With a tick it adds those that
// are to be retried, and ends unused connections.
func (k *tracker) takeUnassigned(tick bool) []*tracked {
	k.mu.Lock()
	defer k.mu.Unlock()
	if tick {
		k.unassigned = append(k.unassigned, k.later...)
		k.later = nil
		for _, c := range k.conns {
			c.endIfUnused()
		}
	}
	all := k.unassigned
	k.unassigned = nil
	return all
}

// connTo returns the connection to a node. The caller holds k.mu.
func (k *tracker) connTo(node *redis.Client) *trackConn {
	c := k.conns[node]
	if c == nil {
		c = &trackConn{tracker: k, node: node, began: time.Now(), hasQueue: make(chan struct{}, 1)}
		c.ctx, c.cancel = context.WithCancel(k.ctx)
		k.conns[node] = c
		k.wg.Go(c.serve)
	}
	return c
}

// changed queues checks of the locks of these names that c has.
func (k *tracker) changed(c *trackConn, names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		for l := k.locks[name]; l != nil; l = l.next {
			if l.conn == c {
				c.enqueue(l)
			}
		}
	}
}

// ended handles the end of a connection. Its locks get another one: at once, unless there
// was none or it was short.
func (k *tracker) ended(c *trackConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.conns, c.node)
	if k.ctx.Err() != nil || c.locks == 0 {
		return
	}
	k.topology.reload(k.ctx)
	again := &k.later
	if c.connected && time.Since(c.began) >= minTrackedTime {
		again = &k.unassigned
		wait.Wake(k.wakeup)
	}
	for _, l := range k.locks {
		for ; l != nil; l = l.next {
			if l.conn == c {
				k.unassign(l)
				*again = append(*again, l)
			}
		}
	}
}

// report logs that a server refuses tracking, once. c keeps no queue from now on, which
// would grow with each lock until c ends.
func (k *tracker) report(c *trackConn, err error) {
	k.mu.Lock()
	c.refused, c.queue = true, nil
	first := !k.refused
	k.refused = true
	k.mu.Unlock()
	if first {
		k.logger.Warn("redis does not report the loss of a lock, which is found at its next renewal",
			"node", k.topology.addrOf(c.node), "error", err)
	}
}

// count returns how many locks the servers report the loss of.
// A nil tracker has none.
func (k *tracker) count() (n int) {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.locks {
		for ; l != nil; l = l.next {
			if l.known {
				n++
			}
		}
	}
	return n
}

// refusesTracking reports whether err shows that a server does not track, or not for
// this user.
func refusesTracking(err error) bool {
	_, answered := errors.AsType[redis.Error](err)
	return answered && !refused(err)
}
