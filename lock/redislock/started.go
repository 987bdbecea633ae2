package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Started returns when the server started, or a time up to some seconds later, by the clock of
// this process. It implements quorumlock.Starter: after a request has been answered, the time is
// that of the server that answered, or of one that started later. It is zero until a server has
// answered. Started returns an error unless Config.AskStart is set. It does not block, and is safe
// for concurrent use.
func (e *Engine) Started() (time.Time, error) {
	if e.starts == nil {
		return time.Time{}, errors.New("redislock: Config.AskStart is not set")
	}
	return e.starts.latest(), nil
}

// starts keeps the latest start of a server that a connection has reached.
type starts struct {
	mu   sync.Mutex
	last time.Time
}

func (s *starts) latest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// asking returns opts with which each new connection reads the server's uptime before any other
// request. A connection on which that fails is not used.
func (s *starts) asking(opts *redis.UniversalOptions) *redis.UniversalOptions {
	o, next := *opts, opts.OnConnect
	o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		if err := s.note(info, time.Now()); err != nil || next == nil {
			return err
		}
		return next(ctx, c)
	}
	return &o
}

// note takes a server's start from an INFO that was answered before now. The uptime is in whole
// seconds and may be one too long.
func (s *starts) note(info string, now time.Time) error {
	_, text, _ := strings.Cut(info, "uptime_in_seconds:")
	text, _, _ = strings.Cut(text, "\r\n")
	uptime, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("redislock: INFO server has no uptime_in_seconds: %q", info)
	}
	started := now.Add(-time.Duration(max(0, uptime-1)) * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if started.After(s.last) {
		s.last = started
	}
	return nil
}
