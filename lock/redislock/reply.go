package redislock

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
)

// replyOf reads the reply of a script that returns 1 for done and 0 for not held.
func replyOf(s *script, cmd *command) error {
	if err := cmd.Err(); err != nil {
		return s.wrap(err)
	}
	switch cmd.Val() {
	case int64(1):
		return nil
	case int64(0):
		return lock.ErrNotHeld
	}
	return badReply(s, cmd)
}

func badReply(s *script, cmd *command) error {
	return fmt.Errorf("redislock: unexpected reply %v to %s", cmd.Val(), s.name)
}

// holder is what a script returned about a lock. No time left means less than a
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
