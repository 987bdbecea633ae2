package redislock

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/wait"
)

const (
	checkBatch = 512
	// checkPause is how often on average a lock may be checked in vain. A server that
	// tracks fewer keys than there are locks reports one with each lock that is checked.
	checkPause = 2 * time.Second
)

// checkNext checks the next locks, or waits until there are some. It pings the server
// when it is idle for a while, as the connection or its node may be gone.
func (c *trackConn) checkNext(conn *redis.Conn) error {
	batch := c.take()
	if len(batch) > 0 {
		return c.check(conn, batch)
	}
	timer := time.NewTimer(quietTime)
	defer timer.Stop()
	select {
	case <-c.hasQueue:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-timer.C:
		return c.ping(conn)
	}
}

// errDemoted is returned when a node no longer has the locks that it is to report.
var errDemoted = errors.New("redislock: track locks: the node has become a replica")

// ping asks the server for one of its locks. A master that has become a replica redirects that, and
// would report nothing if it does not follow the new master. All locks get another connection
// then. It returns an error, too, if the connection broke.
func (c *trackConn) ping(conn *redis.Conn) error {
	name := c.oneLock()
	if name == "" {
		return conn.Ping(c.ctx).Err()
	}
	err := conn.HExists(c.ctx, name, "").Err()
	if _, answered := errors.AsType[redis.Error](err); !answered {
		return err
	}
	if redis.HasErrorPrefix(err, "MOVED") {
		return errDemoted
	}
	return nil
}

// oneLock returns the name of any lock that c tracks, empty if there is none.
func (c *trackConn) oneLock() string {
	c.tracker.mu.Lock()
	defer c.tracker.mu.Unlock()
	if c.locks == 0 {
		return ""
	}
	for name, l := range c.tracker.locks {
		for ; l != nil; l = l.next {
			if l.conn == c {
				return name
			}
		}
	}
	return ""
}

// take takes the next locks to check from the queue.
func (c *trackConn) take() (batch []*tracked) {
	c.tracker.mu.Lock()
	defer c.tracker.mu.Unlock()
	n := min(len(c.queue), checkBatch)
	for _, l := range c.queue[:n] {
		if l.conn == c {
			l.queued = false
			batch = append(batch, l)
		}
	}
	clear(c.queue[:n])
	if c.queue = c.queue[n:]; len(c.queue) == 0 {
		c.queue = nil
	}
	return batch
}

// check asks the server whether locks are there. The server reports their next change.
// It returns an error if the connection broke.
func (c *trackConn) check(conn *redis.Conn, batch []*tracked) error {
	answers := make([]*redis.BoolCmd, len(batch))
	_, err := conn.Pipelined(c.ctx, func(p redis.Pipeliner) error {
		for i, l := range batch {
			answers[i] = p.HExists(c.ctx, l.name, l.owner)
		}
		return nil
	})
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		return err
	}
	lost, vain := c.sort(batch, answers)
	for _, l := range lost {
		l.lost()
	}
	return wait.Sleep(c.ctx, c.rest(vain, time.Now()), nil)
}

// sort returns the locks that may be lost, and how many were checked in vain.
func (c *trackConn) sort(batch []*tracked, answers []*redis.BoolCmd) (lost []*tracked, vain int) {
	k := c.tracker
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, l := range batch {
		if l.conn != c {
			continue
		}
		there, err := answers[i].Result()
		switch {
		case there:
			if l.known {
				vain++
			}
			l.known = true
		case err == nil, redis.HasErrorPrefix(err, "WRONGTYPE"):
			l.known = false
			lost = append(lost, l)
		default: // the lock may be on another node
			if redis.HasErrorPrefix(err, "MOVED") {
				k.topology.reload(k.ctx)
			}
			k.unassign(l)
			k.later = append(k.later, l)
		}
	}
	return lost, vain
}

// rest returns how long to wait before the next check.
func (c *trackConn) rest(vain int, now time.Time) time.Duration {
	c.tracker.mu.Lock()
	locks := float64(max(c.locks, checkBatch))
	c.tracker.mu.Unlock()
	perSecond := locks / checkPause.Seconds()
	c.spent = max(0, c.spent-perSecond*now.Sub(c.spentAt).Seconds()) + float64(vain)
	c.spentAt = now
	return time.Duration(max(0, c.spent-locks) / perSecond * float64(time.Second))
}
