package redislock

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed acquire.lua
	acquireSrc string
	//go:embed renew.lua
	renewSrc string
	//go:embed release.lua
	releaseSrc string
	//go:embed inspect.lua
	inspectSrc string

	acquire = newScript("acquire", acquireSrc)
	renew   = newScript("renew", renewSrc)
	release = newScript("release", releaseSrc)
	inspect = newScript("inspect", inspectSrc).question()
)

// A script is a Lua script with one key.
type script struct {
	name, src, sha string
	resend         bool // changes nothing, so it may be sent again though it may have been executed
}

func newScript(name, src string) *script {
	sum := sha1.Sum([]byte(src))
	return &script{name: name, src: src, sha: hex.EncodeToString(sum[:])}
}

func (s *script) question() *script {
	s.resend = true
	return s
}

func (s *script) failed(err error) error {
	return fmt.Errorf("redislock: %s: %w", s.name, s.outcome(err))
}

// A call is one use of a script.
type call struct {
	name string // of the lock
	args []any
	look bool          // whether the lock is marked as done
	mark time.Duration // mark it for so long; 0 = no
}

func (s *script) evalsha(ctx context.Context, c call) *command {
	return s.command(ctx, "evalsha", s.sha, c)
}

func (s *script) eval(ctx context.Context, c call) *command {
	return s.command(ctx, "eval", s.src, c)
}

// command is a command that is executed at most once, unless it is a question.
// go-redis follows MOVED, ASK and READONLY with it, after which the server has not
// executed anything. After other errors it sends nothing again but questions, and
// only by a client of the user's that is set to; for an own one see router.send.
// A command remembers which node answered.
type command struct {
	*redis.Cmd
	name   string // of the lock
	resend bool
	node   string

	// What goes with it on the same connection: nil = nothing.
	mark *redis.StatusCmd // before it
	look *redis.StringCmd // after it
}

// NoRetry is asked by go-redis before it sends a command again.
func (c *command) NoRetry() bool { return !c.resend }

func (s *script) command(ctx context.Context, verb, code string, c call) *command {
	args := append([]any{verb, code, 1, c.name}, c.args...)
	cmd := &command{Cmd: redis.NewCmd(ctx, args...), name: c.name, resend: s.resend}
	cmd.SetFirstKeyPos(3)
	cmd.attend(ctx, c)
	return cmd
}

// run runs s on one lock.
func (e *Engine) run(ctx context.Context, s *script, c call) (*command, error) {
	cmd := s.evalsha(ctx, c)
	err := e.sender.send(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.eval(ctx, c)
		err = e.sender.send(ctx, cmd)
	}
	if err != nil {
		return cmd, s.failed(err)
	}
	return cmd, nil
}

// runAll runs s on many locks in a pipeline. Each command that is returned
// carries its own error.
func (e *Engine) runAll(ctx context.Context, s *script, calls []call) []*command {
	cmds := make([]*command, len(calls))
	for i, c := range calls {
		cmds[i] = s.evalsha(ctx, c)
	}
	e.sender.sendAll(ctx, cmds)

	var again []*command
	for i, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			cmds[i] = s.eval(ctx, calls[i])
			again = append(again, cmds[i])
		}
	}
	e.sender.sendAll(ctx, again)
	return cmds
}
