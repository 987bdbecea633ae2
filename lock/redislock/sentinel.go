package redislock

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/background"
)

// sentinel is a hook that notes the server that a client under Sentinel is
// connected to. Such a client does not name it.
type sentinel struct{ addr atomic.Value }

// watchSentinel returns nil if client knows its address.
func watchSentinel(client redis.UniversalClient) *sentinel {
	c, ok := client.(*redis.Client)
	if !ok || strings.Contains(c.Options().Addr, ":") || c.Options().Network == "unix" {
		return nil
	}
	s := new(sentinel)
	c.AddHook(s)
	return s
}

// node returns the address that was dialled last, empty if unknown.
func (s *sentinel) node() string {
	addr, _ := s.addr.Load().(string)
	return addr
}

// findTime bounds the search of a dial for the master: go-redis gives up on a Sentinel
// that does not answer only after two timeouts within one dial.
const findTime = 5 * time.Second

// DialHook lets a dial continue in the background when ctx ends. If it ended with ctx, the
// next dial would query the same hanging Sentinel again.
func (s *sentinel) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		type dialed struct {
			conn net.Conn
			err  error
		}
		found := make(chan dialed)
		go func() {
			own, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTime)
			defer cancel()
			var conn net.Conn
			err := background.Do(nil, "redislock: dial", func() (err error) {
				conn, err = next(own, network, addr)
				return err
			})
			select {
			case found <- dialed{conn, err}:
			case <-ctx.Done():
				if err == nil {
					_ = background.Do(nil, "redislock: close a connection", func() error { return conn.Close() })
				}
			}
		}()
		select {
		case d := <-found:
			if d.err == nil {
				s.addr.Store(d.conn.RemoteAddr().String())
			}
			return d.conn, d.err
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
		}
	}
}

func (*sentinel) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (*sentinel) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
