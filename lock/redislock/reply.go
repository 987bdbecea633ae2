package redislock

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
)

// done reads the reply of a script that returns 1 for done and 0 for not held.
func (c *command) done() error {
	if err := c.Err(); err != nil {
		return c.script.wrap(err)
	}
	switch c.Val() {
	case int64(1):
		return nil
	case int64(0):
		return lock.ErrNotHeld
	}
	return c.badReply()
}

func (c *command) badReply() error {
	return fmt.Errorf("redislock: unexpected reply %v to %s", c.Val(), c.script.name)
}

// holderOf is what a script returned about a lock. No time left means less than a
// millisecond; a negative one, that the lock does not expire or is not there.
func (e *Engine) holderOf(cmd *command, owner string, ms int64) lock.Holder {
	if ms == 0 {
		ms = 1
	}
	return lock.Holder{
		Owner: owner,
		TTL:   time.Duration(max(0, ms)) * time.Millisecond,
		Place: e.place(cmd.name, cmd.node),
	}
}
