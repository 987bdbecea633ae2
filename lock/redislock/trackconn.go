package redislock

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/wait"
)

// invalidations is the channel on which a server reports changes of tracked keys.
const invalidations = "__redis__:invalidate"

// A trackConn tracks the locks of one node by two connections. It queries a lock on one,
// so that the server reports its next change on the other. A report is a hint: the lock
// is queried again. A trackConn lives until a connection breaks or it tracks no lock any
// more.
type trackConn struct {
	tracker   *tracker
	node      *redis.Client
	began     time.Time
	connected bool
	ctx       context.Context
	cancel    context.CancelFunc
	hasQueue  chan struct{}

	spent   float64   // checks in vain
	spentAt time.Time // when spent was right

	// Guarded by tracker.mu.
	queue   []*tracked
	locks   int // that it has
	unused  bool
	refused bool // the server does not track: nothing is queued until the next connection
}

// enqueue queues a lock to be checked. The caller holds tracker.mu.
func (c *trackConn) enqueue(l *tracked) {
	if l.queued || c.refused {
		return
	}
	l.queued = true
	c.queue = append(c.queue, l)
	wait.Wake(c.hasQueue)
}

// endIfUnused ends a connection that has had no locks for a tick. The caller holds
// tracker.mu.
func (c *trackConn) endIfUnused() {
	if c.unused && c.locks == 0 {
		c.cancel()
	}
	c.unused = c.locks == 0
}

func (c *trackConn) serve() {
	err := background.Do(c.tracker.logger, "redislock: track locks", c.track)
	if refusesTracking(err) {
		c.tracker.report(c, err)
		_ = wait.Sleep(c.ctx, refusalTime, nil)
	}
	c.cancel()
	c.tracker.ended(c)
}

// track checks locks until a connection breaks.
func (c *trackConn) track() error {
	var id atomic.Int64
	client := redis.NewClient(trackOptions(c.node.Options(), &id))
	defer client.Close()
	sub := client.Subscribe(c.ctx, invalidations)
	defer sub.Close()
	if _, err := sub.ReceiveTimeout(c.ctx, time.Second); err != nil {
		return err
	}
	redirect := id.Load() // of sub: the next connection has another
	conn := client.Conn()
	defer conn.Close()
	if err := conn.Do(c.ctx, "client", "tracking", "on", "redirect", redirect).Err(); err != nil {
		return err
	}
	c.connected = true

	var listening sync.WaitGroup
	defer listening.Wait()
	defer context.AfterFunc(c.ctx, func() {
		_ = background.Do(c.tracker.logger, "redislock: close a connection", sub.Close)
	})()
	defer c.cancel()
	listening.Go(func() {
		defer c.cancel()
		c.listen(sub)
	})
	for c.ctx.Err() == nil {
		if err := c.checkNext(conn); err != nil {
			return err
		}
	}
	return nil
}

// listen queues checks of the locks that the server reports, until the connection breaks. When
// all keys are deleted the server reports no names, which go-redis takes for an error: the
// next connection checks all locks.
func (c *trackConn) listen(sub *redis.PubSub) {
	defer func() {
		_ = recover() // go-redis panics at malformed messages; here the connection ends
	}()
	for quiet := false; ; {
		msg, err := sub.ReceiveTimeout(c.ctx, quietTime)
		network, ok := errors.AsType[net.Error](err)
		switch {
		case c.ctx.Err() != nil:
			return
		case err == nil:
			quiet = false
			if m, ok := msg.(*redis.Message); ok {
				if len(m.PayloadSlice) == 0 {
					return
				}
				c.tracker.changed(c, m.PayloadSlice)
			}
		case ok && network.Timeout() && !quiet:
			quiet = true
			if sub.Ping(c.ctx) != nil {
				return
			}
		default:
			return
		}
	}
}

// trackOptions returns those of a client for the two connections to a node. The id of
// each connection that is made goes to id.
func trackOptions(node *redis.Options, id *atomic.Int64) *redis.Options {
	o, next := *node, node.OnConnect
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		n, err := conn.ClientID(ctx).Result()
		if err != nil {
			return err
		}
		id.Store(n)
		if next == nil {
			return nil
		}
		return next(ctx, conn)
	}
	o.Protocol = 2 // go-redis reads pushes of RESP3 only with the next answer
	o.PushNotificationProcessor = nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = atMostSecond(o.DialTimeout), atMostSecond(o.ReadTimeout), atMostSecond(o.WriteTimeout)
	o.ContextTimeoutEnabled = true
	o.MaxRetries, o.DialerRetries = -1, 1
	o.PoolSize, o.MinIdleConns, o.MaxActiveConns = 1, 0, 0
	o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, -1
	o.Limiter = nil
	return &o
}
