package redislock

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	quietTime   = 2 * time.Second // without a message: is anybody there?
	maxChannels = 256             // in one command
)

// newLink starts a link. The caller holds w.mu.
func (w *waker) newLink(node *redis.Client) *link {
	l := &link{
		waker:   w,
		node:    node,
		sharded: w.bus.sharded(),
		sub:     w.bus.open(w.ctx, node),
		more:    make(chan struct{}, 1),
		topics:  make(map[*topic]struct{}),
		leaving: make(map[string]int),
	}
	l.ctx, l.cancel = context.WithCancel(w.ctx)
	w.links[node] = l
	w.wg.Go(l.read)
	w.wg.Go(l.write)
	return l
}

// write carries out the orders, and closes the connection at the end, which ends
// read.
func (l *link) write() {
	defer l.sub.Close()
	defer l.cancel()
	for {
		select {
		case <-l.more:
		case <-l.ctx.Done():
			return
		}
		for orders := l.take(); len(orders) > 0; {
			n := l.together(orders)
			if err := l.send(orders[:n]); err != nil {
				return
			}
			orders = orders[n:]
		}
	}
}

func (l *link) take() []order {
	l.waker.mu.Lock()
	defer l.waker.mu.Unlock()
	orders := l.orders
	l.orders = nil
	return orders
}

// together returns how many of the first orders one command may carry out: on a
// cluster those of one slot.
func (l *link) together(orders []order) int {
	n := 1
	for n < min(len(orders), maxChannels) && orders[n].subscribe == orders[0].subscribe &&
		(!l.sharded || orders[n].slot == orders[0].slot) {
		n++
	}
	return n
}

func (l *link) send(orders []order) error {
	channels := make([]string, len(orders))
	for i, o := range orders {
		channels[i] = o.channel
	}
	switch subscribe := orders[0].subscribe; {
	case l.sharded && subscribe:
		return l.sub.SSubscribe(l.ctx, channels...)
	case l.sharded:
		return l.sub.SUnsubscribe(l.ctx, channels...)
	case subscribe:
		return l.sub.Subscribe(l.ctx, channels...)
	}
	return l.sub.Unsubscribe(l.ctx, channels...)
}

// read takes in what the node says until the connection breaks.
func (l *link) read() {
	defer l.cancel()
	l.waker.lost(l, l.listen())
}

// listen reports whether there was a connection at all.
func (l *link) listen() (connected bool) {
	defer func() {
		_ = recover() // go-redis panics at malformed messages; here the connection ends
	}()
	if l.sub.Ping(l.ctx) != nil { // it connects
		return false
	}
	for quiet := false; ; {
		msg, err := l.sub.ReceiveTimeout(l.ctx, quietTime)
		var refusal redis.Error
		var network net.Error
		switch {
		case l.ctx.Err() != nil:
			return true
		case err == nil:
			quiet = false
			l.handle(msg)
		case errors.As(err, &refusal):
			quiet = false
			l.waker.refuse(l, refusal)
		case errors.As(err, &network) && network.Timeout() && !quiet:
			quiet = true
			if l.sub.Ping(l.ctx) != nil {
				return true
			}
		default:
			return true
		}
	}
}

func (l *link) handle(msg any) {
	switch msg := msg.(type) {
	case *redis.Message:
		if msg.Payload == "0" { // the lock was released
			l.waker.wake(msg.Channel)
		}
	case *redis.Subscription:
		if strings.HasSuffix(msg.Kind, "unsubscribe") {
			l.waker.ended(l, msg.Channel)
		} else {
			l.waker.confirm(l, msg.Channel)
		}
	}
}
