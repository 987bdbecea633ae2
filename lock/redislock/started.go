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

// Started returns when the server has started, or up to some seconds later. When a request
// has been answered, that is the server that answered, or one that has started since. The
// zero time means that none has answered yet. It needs Config.AskStart.
func (e *Engine) Started() (time.Time, error) {
	if e.starts == nil {
		return time.Time{}, errors.New("redislock: Config.AskStart is not set")
	}
	return e.starts.latest(), nil
}

// starts is since when the servers run that connections lead to.
type starts struct {
	mu   sync.Mutex
	last time.Time
}

func (s *starts) latest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// asking returns opts with which each new connection asks the server, before any request is
// sent on it. One that does not tell is not used.
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

// note takes in what a server told until now. Its seconds may begin up to one before it
// has started, and it counts whole ones.
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
