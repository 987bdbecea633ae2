package zklock_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/zklock"
)

// A panicky handler panics at each record.
type panicky struct {
	slog.Handler
	undeleted *atomic.Bool // a lock can't be deleted
}

func (panicky) Enabled(context.Context, slog.Level) bool { return true }

func (p panicky) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "can't be deleted") {
		p.undeleted.Store(true)
	}
	panic("a logger")
}

func newPanicky() panicky { return panicky{undeleted: new(atomic.Bool)} }

// hooks has the methods of a Config.Dial that panic.
type hooks struct{ dial, read, write, close atomic.Bool }

func (h *hooks) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	check(&h.dial)
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return hooked{c, h}, err
}

func check(panics *atomic.Bool) {
	if panics.Load() {
		panic("a hook")
	}
}

type hooked struct {
	net.Conn
	hooks *hooks
}

func (c hooked) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	check(&c.hooks.read)
	return n, err
}

func (c hooked) Write(p []byte) (int, error) {
	check(&c.hooks.write)
	return c.Conn.Write(p)
}

func (c hooked) Close() error {
	err := c.Conn.Close()
	check(&c.hooks.close)
	return err
}

// A connection of Config.Dial that panics is one that has failed, and so is a Dial that panics. The
// engine goes on in the same session when they panic no more, though the logger does.
func TestPanicOfAConnection(t *testing.T) {
	t.Parallel()
	for name, panics := range map[string]func(*hooks) []*atomic.Bool{
		"dial":  func(h *hooks) []*atomic.Bool { return []*atomic.Bool{&h.dial, &h.read} },
		"read":  func(h *hooks) []*atomic.Bool { return []*atomic.Bool{&h.read} },
		"write": func(h *hooks) []*atomic.Bool { return []*atomic.Bool{&h.write} },
		"close": func(h *hooks) []*atomic.Bool { return []*atomic.Bool{&h.close, &h.read} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := new(hooks)
			e := openWith(t, zklock.Config{
				Servers: teststack.ZooKeeper(t), Root: root(t), SessionTimeout: time.Minute, Dial: h.Dial, Logger: slog.New(newPanicky()),
			})
			acquire(t, e, mine, ttl)
			for _, p := range panics(h) {
				p.Store(true)
			}
			testwait.Until(t, "a request fails", func() bool { return e.Ping(t.Context()) != nil })
			for _, p := range panics(h) {
				p.Store(false)
			}
			testwait.Until(t, "the lock is renewed", func() bool {
				return e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0] == nil
			})
			release(t, e, mine)
		})
	}
}

// A lock that was not renewed is deleted, though the connection panics at the first try, and the
// logger at each record.
func TestPanicDuringDeletion(t *testing.T) {
	t.Parallel()
	h, r, log := new(hooks), root(t), newPanicky()
	e := openWith(t, zklock.Config{
		Servers: teststack.ZooKeeper(t), Root: r, SessionTimeout: time.Minute, Dial: h.Dial, Logger: slog.New(log),
	})
	other := open(t, r, teststack.ZooKeeper(t))
	acquire(t, e, mine, time.Second)
	h.write.Store(true)
	testwait.Until(t, "the deletion has failed", log.undeleted.Load)
	h.write.Store(false)
	testwait.Until(t, "the lock is deleted", func() bool {
		holder, err := other.Inspect(t.Context(), mine.Key)
		return err == nil && holder.Owner == ""
	})
}
