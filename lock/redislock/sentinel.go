package redislock

import (
	"context"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
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

func (s *sentinel) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			s.addr.Store(conn.RemoteAddr().String())
		}
		return conn, err
	}
}

func (*sentinel) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (*sentinel) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
