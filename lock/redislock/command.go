package redislock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/lockengine"
)

// A command is one use of a script. It is executed at most once, unless it is a
// question. go-redis resends it after MOVED, ASK and READONLY, with which the server
// has executed nothing. After other errors go-redis resends only questions, and only if
// the user's client is configured to; for the engine's own client see router.send.
type command struct {
	script *script
	name   string // of the lock
	line   string // of the lock's line, if the script may use that: its second key
	args   []any  // see arguments

	marker     string        // the lock's marker, if setMarker or readMarker is set
	setMarker  time.Duration // how long to mark the lock as done; 0 = not
	readMarker bool          // whether to read the marker

	*redis.Cmd        // set by prepare
	node       string // the node that answered

	// Commands sent with it on its connection: nil = none.
	markerSet *redis.StatusCmd // before it
	markerGet *redis.StringCmd // after it
}

// headRoom is how many arguments a command has before those of its script.
const headRoom = 5

// arguments returns the arguments of a script, behind room for those of its command.
func arguments(own ...any) []any {
	return append(make([]any, headRoom, headRoom+len(own)), own...)
}

// NoRetry is called by go-redis before it sends a command again.
func (c *command) NoRetry() bool { return !c.script.question() }

// prepare makes the command ready to be sent by the hash of its script, or by the
// source if the node does not know the hash.
func (c *command) prepare(ctx context.Context, bySource bool) {
	args := c.args
	if c.line == "" {
		args = args[1:]
	}
	args[0], args[1], args[2], args[3] = "evalsha", c.script.byHash, 1, c.name
	if c.line != "" {
		args[2], args[4] = 2, c.line
	}
	if bySource {
		args[0], args[1] = "eval", c.script.bySource
	}
	c.Cmd = redis.NewCmd(ctx, args...)
	c.SetFirstKeyPos(3)
	if c.setMarker > 0 {
		c.markerSet = redis.NewStatusCmd(ctx, "set", c.marker, "1", "px", c.setMarker.Milliseconds())
	}
	if c.readMarker {
		c.markerGet = redis.NewStringCmd(ctx, "get", c.marker)
	}
}

// done reads the reply of a script that returns 1 for done and 0 for not held.
func (c *command) done() error {
	if err := c.Err(); err != nil {
		return c.script.wrap(err)
	}
	switch c.Val() {
	case int64(1):
		return nil
	case int64(0):
		return lockengine.ErrNotHeld
	}
	return c.badReply()
}

// foreign returns an error if a field of the lock is no owner: an owner's id has a colon.
func (c *command) foreign(field string) error {
	if field == "" || strings.Contains(field, ":") {
		return nil
	}
	return fmt.Errorf("redislock: %s: %w: the key is no such lock, it has the field %q: a read-write lock of Redisson?", c.script.name, lockengine.ErrUnusable, field)
}

func (c *command) badReply() error {
	return fmt.Errorf("redislock: unexpected reply %v to %s", c.Val(), c.script.name)
}

// hasMarker reports whether the command is sent with one for the marker.
func (c *command) hasMarker() bool { return c.markerSet != nil || c.markerGet != nil }

// marked reports whether the lock is known to be marked.
func (c *command) marked() bool { return c.markerGet != nil && c.markerGet.Err() == nil }

// sendVia sends the command through client. Only its own error counts.
func (c *command) sendVia(ctx context.Context, client interface {
	Process(context.Context, redis.Cmder) error
	Pipeline() redis.Pipeliner
}) error {
	if !c.hasMarker() {
		return client.Process(ctx, c)
	}
	_ = pipeline(ctx, client.Pipeline(), []*command{c})
	return c.Err()
}

// pipeline sends cmds together and returns the first error.
func pipeline(ctx context.Context, pipe redis.Pipeliner, cmds []*command) error {
	if len(cmds) == 0 {
		return nil
	}
	for _, cmd := range cmds {
		cmd.enqueue(ctx, pipe)
	}
	return exec(ctx, pipe, cmds)
}

// enqueue adds the command to pipe, with its commands for the marker.
func (c *command) enqueue(ctx context.Context, pipe redis.Pipeliner) {
	if c.markerSet != nil {
		_ = pipe.Process(ctx, c.markerSet)
	}
	_ = pipe.Process(ctx, c)
	if c.markerGet != nil {
		_ = pipe.Process(ctx, c.markerGet)
	}
}

// exec sends pipe, which has cmds in it, and returns the first error. When a login
// is rejected, go-redis leaves the commands without an error, and without the
// value that each script returns.
func exec(ctx context.Context, pipe redis.Pipeliner, cmds []*command) error {
	_, err := pipe.Exec(ctx)
	for _, cmd := range cmds {
		if err != nil && cmd.Err() == nil && cmd.Val() == nil {
			cmd.SetErr(err)
		}
	}
	return err
}
