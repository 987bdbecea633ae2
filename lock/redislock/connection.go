package redislock

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/background"
)

// quietTime is how long a connection is without a message before it is checked.
const quietTime = 2 * time.Second

// connect starts a connection to node. The caller holds w.mu.
func (w *waker) connect(node *redis.Client) *subConn {
	c := &subConn{
		waker:       w,
		node:        node,
		sharded:     w.topology.sharded(),
		sub:         w.topology.open(w.ctx, node),
		hasCommands: make(chan struct{}, 1),
		topics:      make(map[*topic]struct{}),
		leaving:     make(map[string]int),
	}
	c.ctx, c.cancel = context.WithCancel(w.ctx)
	w.conns[node] = c
	w.wg.Go(c.read)
	w.wg.Go(c.write)
	return c
}

// write carries out the commands, and closes the connection at the end, which ends
// read.
func (c *subConn) write() {
	_ = background.Do(nil, "redislock: subscribe", c.carryOut)
	c.cancel()
	_ = background.Do(nil, "redislock: close a connection", c.sub.Close)
}

// carryOut carries out the commands until one fails.
func (c *subConn) carryOut() error {
	for {
		select {
		case <-c.hasCommands:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
		for _, o := range c.take() {
			if err := c.send(o); err != nil {
				return err
			}
		}
	}
}

func (c *subConn) take() []subCommand {
	c.waker.mu.Lock()
	defer c.waker.mu.Unlock()
	commands := c.commands
	c.commands = nil
	return commands
}

func (c *subConn) send(o subCommand) error {
	subscribe, unsubscribe := c.sub.Subscribe, c.sub.Unsubscribe
	if c.sharded {
		subscribe, unsubscribe = c.sub.SSubscribe, c.sub.SUnsubscribe
	}
	if o.subscribe {
		return subscribe(c.ctx, o.channel)
	}
	return unsubscribe(c.ctx, o.channel)
}

// read handles the node's messages until the connection breaks.
func (c *subConn) read() {
	defer c.cancel()
	c.waker.onConnLost(c, c.listen())
}

// listen reports whether there was a connection at all.
func (c *subConn) listen() (connected bool) {
	defer func() {
		_ = recover() // go-redis panics at malformed messages; here the connection ends
	}()
	if c.sub.Ping(c.ctx) != nil { // it connects
		return false
	}
	for quiet := false; ; {
		msg, err := c.sub.ReceiveTimeout(c.ctx, quietTime)
		var refusal redis.Error
		var network net.Error
		switch {
		case c.ctx.Err() != nil:
			return true
		case err == nil:
			quiet = false
			c.handle(msg)
		case errors.As(err, &refusal):
			quiet = false
			c.waker.onError(c, refusal)
		case errors.As(err, &network) && network.Timeout() && !quiet:
			quiet = true
			if c.sub.Ping(c.ctx) != nil {
				return true
			}
		default:
			return true
		}
	}
}

func (c *subConn) handle(msg any) {
	switch msg := msg.(type) {
	case *redis.Message:
		if msg.Payload == "0" { // the lock was released
			c.waker.onRelease(msg.Channel)
		}
	case *redis.Subscription:
		if strings.HasSuffix(msg.Kind, "unsubscribe") {
			c.waker.onUnsubscribe(c, msg.Channel)
		} else {
			c.waker.onSubscribe(c, msg.Channel)
		}
	}
}
