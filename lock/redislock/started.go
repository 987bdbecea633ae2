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

// Started returns when the server started, or a time up to some seconds later, by the clock of this
// process. For a server that replaces another one, that is the time of its first connection. For
// the first server it is computed from its uptime, and too early if the server's clock was set
// since it started. Started implements ability.Starter: after a request has been answered, the
// time is that of the server that answered, or of one that started later. It is zero until a server
// has answered. Started returns an error unless Config.AskStart is set. It does not block, and is
// safe for concurrent use.
func (e *engine) Started() (time.Time, error) {
	if e.starts == nil {
		return time.Time{}, errors.New("redislock: Config.AskStart is not set")
	}
	return e.starts.latest(), nil
}

// starts keeps the latest start of a server that a connection has reached. A server's uptime is
// the difference of two readings of its clock, and so wrong if that clock was set in between,
// as after a boot. So a new run id means that the server has started just now, whatever its
// uptime. For the first run id there is only the uptime.
type starts struct {
	mu    sync.Mutex
	last  time.Time
	runID string
}

func (s *starts) latest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// asking returns a copy of opts that makes each new connection read the server's run id and
// uptime before any other request. A connection on which that fails is not used.
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
	uptime, err := strconv.Atoi(field(info, "uptime_in_seconds"))
	if err != nil {
		return fmt.Errorf("redislock: INFO server has no uptime_in_seconds: %q", info)
	}
	runID := field(info, "run_id")
	if runID == "" {
		return fmt.Errorf("redislock: INFO server has no run_id: %q", info)
	}
	started := now.Add(-time.Duration(max(0, uptime-1)) * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runID != "" && runID != s.runID {
		started = now
	}
	s.runID = runID
	if started.After(s.last) {
		s.last = started
	}
	return nil
}

// field returns a field of an INFO, "" if it is not there.
func field(info, name string) string {
	_, text, _ := strings.Cut(info, "\n"+name+":")
	text, _, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(text, "\r")
}
