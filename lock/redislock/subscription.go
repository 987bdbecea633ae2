package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// againTime is how long a subscription that failed waits to be tried again.
const againTime = 100 * time.Millisecond

// A waker listens for the release of locks and wakes those who wait for them.
// It has one connection to each node with a lock that somebody waits for, and
// two goroutines per connection, whatever the number of locks.
type waker struct {
	bus   *bus
	kick  chan struct{} // makes run look for topics without a link
	again *time.Timer   // sends a kick later
	ctx   context.Context
	close context.CancelFunc
	wg    sync.WaitGroup

	mu      sync.Mutex
	running bool
	topics  map[string]*topic       // by channel
	links   map[*redis.Client]*link // by node
	adrift  map[*topic]struct{}     // topics without a link
}

// A topic is the channel of one lock.
type topic struct {
	name, channel string
	watchers      map[*watcher]struct{}
	link          *link         // nil = none yet
	ready         chan struct{} // closed while the subscription stands
	confirmed     bool
	missed        bool // it stood before: messages may have been missed
	idle          bool // nobody watched at the last check
}

type watcher struct{ wake func() }

// A link is one connection that subscribes, to one node. It lives until the
// connection breaks or nobody needs it any more.
type link struct {
	waker   *waker
	node    *redis.Client // nil = the only one
	sharded bool
	sub     *redis.PubSub
	ctx     context.Context
	cancel  context.CancelFunc
	more    chan struct{} // there are orders

	// Guarded by waker.mu.
	topics  map[*topic]struct{}
	orders  []order
	leaving map[string]int // how many of our unsubscribes are not answered yet, by channel
	refused bool           // the node has refused a subscription
}

// An order is to subscribe to a channel or to unsubscribe from it.
type order struct {
	channel   string
	slot      int
	subscribe bool
}

// prod makes run look for topics without a link.
func (w *waker) prod() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// detach takes a topic from its link. The caller holds w.mu.
func (w *waker) detach(t *topic) {
	if l := t.link; l != nil {
		delete(l.topics, t)
		l.leaving[t.channel]++
		l.queue(order{t.channel, slot(t.name), false})
	}
	w.unsettle(t)
}

// unsettle notes that t has no subscription any more. The caller holds w.mu.
func (w *waker) unsettle(t *topic) {
	t.link = nil
	w.adrift[t] = struct{}{}
	if t.confirmed {
		t.confirmed, t.missed = false, true
		t.ready = make(chan struct{})
	}
}

// queue adds an order. The caller holds waker.mu.
func (l *link) queue(o order) {
	l.orders = append(l.orders, o)
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// end has the link end, which then has no topics. The caller holds w.mu.
func (l *link) end() {
	if l.waker.links[l.node] == l {
		delete(l.waker.links, l.node)
	}
	l.cancel()
}
