package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	confirmTime = time.Second // how long Watch waits for its subscription
	checkTime   = time.Second // how often subscriptions are compared with the masters
)

func newWaker(b *bus) *waker {
	w := &waker{
		bus:    b,
		kick:   make(chan struct{}, 1),
		topics: make(map[string]*topic),
		links:  make(map[*redis.Client]*link),
		adrift: make(map[*topic]struct{}),
	}
	w.ctx, w.close = context.WithCancel(context.Background())
	w.again = time.AfterFunc(time.Hour, w.prod)
	return w
}

// stop ends all goroutines and connections.
func (w *waker) stop() {
	w.mu.Lock()
	w.close()
	w.mu.Unlock()
	w.again.Stop()
	w.wg.Wait()
}

// watch subscribes to the channel of a lock.
func (w *waker) watch(ctx context.Context, name string, wake func()) (stop func(), err error) {
	if w.bus.unable != nil {
		return nil, w.bus.unable
	}
	t, x, ready := w.join(name, wake)
	if t == nil {
		return nil, errClosed
	}
	leave := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(t.watchers, x)
	}
	timer := time.NewTimer(confirmTime)
	defer timer.Stop()
	select {
	case <-ready:
		return leave, nil
	case <-ctx.Done():
		err = fmt.Errorf("redislock: subscribe: %w", ctx.Err())
	case <-timer.C:
		err = fmt.Errorf("redislock: subscribe: no answer within %v", confirmTime)
	case <-w.ctx.Done():
		err = errClosed
	}
	leave()
	return nil, err
}

// join adds a watcher to the topic of a lock. It returns nil after stop.
func (w *waker) join(name string, wake func()) (*topic, *watcher, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return nil, nil, nil
	}
	if !w.running {
		w.running = true
		w.wg.Go(w.run)
	}
	t := w.topics[channel(name)]
	if t == nil {
		t = &topic{name: name, channel: channel(name), watchers: make(map[*watcher]struct{}), ready: make(chan struct{})}
		w.topics[t.channel] = t
		w.adrift[t] = struct{}{}
		w.prod()
	}
	x := &watcher{wake}
	t.watchers[x] = struct{}{}
	t.idle = false
	return t, x, t.ready
}

// run gives topics a link, and another one when their lock moves.
func (w *waker) run() {
	ticker := time.NewTicker(checkTime)
	defer ticker.Stop()
	for {
		check := false
		select {
		case <-w.kick:
		case <-ticker.C:
			check = true
		case <-w.ctx.Done():
			return
		}
		if err := w.bus.prepare(w.ctx); err != nil {
			w.again.Reset(againTime)
			continue
		}
		w.mu.Lock()
		if check {
			w.sweep()
			w.follow()
		}
		w.settle()
		w.mu.Unlock()
	}
}

// sweep drops topics that nobody has watched for a while, and links without a
// topic. Hot locks are waited for again and again, so it is not done at once.
// The caller holds w.mu.
func (w *waker) sweep() {
	for _, t := range w.topics {
		if len(t.watchers) > 0 {
			continue
		}
		if !t.idle {
			t.idle = true
			continue
		}
		w.detach(t)
		delete(w.adrift, t)
		delete(w.topics, t.channel)
	}
	for _, l := range w.links {
		if len(l.topics) == 0 {
			l.end()
		}
	}
}

// follow detaches topics whose lock has another master now: go-redis by itself
// does not. The caller holds w.mu.
func (w *waker) follow() {
	for _, t := range w.topics {
		if t.link == nil {
			continue
		}
		if node, err := w.bus.node(w.ctx, t.name); err == nil && node != t.link.node {
			w.detach(t)
		}
	}
}

// settle gives each topic without a link one. Subscriptions that were refused
// are tried again. The caller holds w.mu.
func (w *waker) settle() {
	for _, l := range w.links {
		if l.refused {
			l.refused = false
			for t := range l.topics {
				if !t.confirmed {
					w.detach(t)
				}
			}
		}
	}
	for t := range w.adrift {
		node, err := w.bus.node(w.ctx, t.name)
		if err != nil {
			w.again.Reset(againTime)
			return
		}
		l := w.links[node]
		if l == nil {
			l = w.newLink(node)
		}
		delete(w.adrift, t)
		t.link = l
		l.topics[t] = struct{}{}
		l.queue(order{t.channel, slot(t.name), true})
	}
}

// counts tells how many locks are watched through how many connections.
func (w *waker) counts() (topics, links int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.topics), len(w.links)
}
