package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/wait"
)

// againTime is how long a subscription that failed waits to be tried again.
const againTime = 100 * time.Millisecond

// A waker listens for the release of locks and wakes their waiters. It has one
// connection to each node with a lock that has waiters, and two goroutines per
// connection, whatever the number of locks.
type waker struct {
	topology *topology
	wakeup   chan struct{} // makes run look for topics without a connection
	again    *time.Timer   // wakes run later
	ctx      context.Context
	close    context.CancelFunc
	wg       sync.WaitGroup

	leaveLine func(ctx context.Context, name string)

	mu         sync.Mutex
	running    bool
	topics     map[string]*topic          // by channel
	conns      map[*redis.Client]*subConn // by node
	unassigned map[*topic]struct{}        // topics without a connection
}

// A topic is the channel of one lock.
type topic struct {
	name, channel string
	watchers      map[*watcher]struct{}
	conn          *subConn      // nil = none yet
	ready         chan struct{} // closed while the subscription stands
	confirmed     bool
	missed        bool // the subscription was renewed: messages may have been missed
	idle          bool // no watcher at the last check
	inLine        bool // the engine waits for its turn
}

type watcher struct{ wake func() }

// A subConn is one connection that subscribes, to one node. It lives until the
// connection breaks or has no topic any more.
type subConn struct {
	waker       *waker
	node        *redis.Client // nil = the only one
	sharded     bool
	sub         *redis.PubSub
	ctx         context.Context
	cancel      context.CancelFunc
	hasCommands chan struct{} // there are commands

	// Guarded by waker.mu.
	topics   map[*topic]struct{}
	commands []subCommand
	leaving  map[string]int // how many of our unsubscribes are not answered yet, by channel
	refused  bool           // the node has refused a subscription
}

// A subCommand subscribes to a channel or unsubscribes from it.
type subCommand struct {
	channel   string
	subscribe bool
}

// wakeRun makes run look for topics without a connection.
func (w *waker) wakeRun() { wait.Wake(w.wakeup) }

// detach takes a topic from its connection. The caller holds w.mu.
func (w *waker) detach(t *topic) {
	if c := t.conn; c != nil {
		delete(c.topics, t)
		c.leaving[t.channel]++
		c.queue(subCommand{t.channel, false})
	}
	w.unassign(t)
}

// unassign notes that t has no subscription any more. The caller holds w.mu.
func (w *waker) unassign(t *topic) {
	t.conn = nil
	w.unassigned[t] = struct{}{}
	if t.confirmed {
		t.confirmed, t.missed = false, true
		t.ready = make(chan struct{})
	}
}

// queue adds a command. The caller holds waker.mu.
func (c *subConn) queue(o subCommand) {
	c.commands = append(c.commands, o)
	wait.Wake(c.hasCommands)
}

// end ends the connection, which then has no topics. The caller holds w.mu.
func (c *subConn) end() {
	if c.waker.conns[c.node] == c {
		delete(c.waker.conns, c.node)
	}
	c.cancel()
}
