package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
)

// refusals are the answers of a server that has not executed a command and may
// do so later: a failover, a migration or a restart is under way.
var refusals = []string{"CLUSTERDOWN", "TRYAGAIN", "LOADING", "MASTERDOWN", "MOVED", "ASK", "READONLY"}

// outcome adds to the error of a command whether it may have been executed.
func outcome(err error) error {
	_, answered := errors.AsType[redis.Error](err)
	switch {
	case errors.Is(err, lock.ErrNotSent):
		return err
	case refused(err):
		return fmt.Errorf("%w: %w", lock.ErrNotSent, err)
	case answered && unusable(err):
		return fmt.Errorf("%w: %w", lock.ErrUnusable, err)
	case answered, errors.Is(err, redis.ErrClosed), errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%w: %w", lock.ErrNoAnswer, err)
}

func refused(err error) bool {
	if undialled(err) || errors.Is(err, errSilent) || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	for _, prefix := range refusals {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// unusable reports whether an answer to a script says that its key has another
// type, or is kept from the user: a command that is kept from him fails for all
// keys. Redis 6 has these words within a text of its own.
func unusable(err error) bool {
	_, denied, _ := strings.Cut(err.Error(), "NOPERM ")
	return strings.Contains(err.Error(), "WRONGTYPE ") || strings.Contains(denied, " key")
}

// undialled reports whether there was no connection to send anything on.
func undialled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// broken reports whether the connection ended before an answer came.
func broken(err error) bool {
	if err == nil {
		return false
	}
	network, ok := errors.AsType[net.Error](err)
	return errors.Is(outcome(err), lock.ErrNoAnswer) && (!ok || !network.Timeout())
}
