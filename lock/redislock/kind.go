package redislock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
)

// A kindError says that the server is of another kind than the client, which nobody
// notices before the first request. Nothing was executed.
type kindError struct{ hint, answer string }

func (e *kindError) Error() string {
	return fmt.Sprintf("%s (the server says: %s)", e.hint, strings.TrimSpace(e.answer))
}

func (e *kindError) Is(target error) bool {
	return target == lock.ErrDenied || target == lock.ErrNotSent
}

// What to do about it.
const (
	hintCluster    = "the server is a node of a Redis Cluster: open it by redis+cluster://, with IsClusterMode, or with a cluster client"
	hintNoCluster  = "the server is no Redis Cluster: open it by redis://, or by redis+sentinel:// if it is under Sentinel"
	hintSentinel   = "the server knows no scripts: if it is a Sentinel, open it by redis+sentinel://host:26379/name, or with a MasterName"
	hintNoSentinel = "the server is no Sentinel: open it by redis:// or redis+cluster://, or name the port of a Sentinel"
	hintName       = "Sentinel knows no master of this name"
)

// explain returns a kindError if err says that the server is of another kind.
func (t *topology) explain(err error) error {
	answer, ok := errors.AsType[redis.Error](err)
	if !ok {
		return err
	}
	unknown := func(command string) bool {
		text := strings.ReplaceAll(strings.ToLower(answer.Error()), "`", "'") // as before Redis 7
		return strings.HasPrefix(text, "err unknown command '"+command+"'")
	}
	var hint string
	switch {
	case t.sentinel != nil && errors.Is(answer, redis.Nil):
		hint = hintName
	case unknown("sentinel"):
		hint = hintNoSentinel
	case unknown("evalsha"), unknown("cluster"):
		hint = hintSentinel
	case t.cluster == nil && (redis.HasErrorPrefix(answer, "MOVED") || redis.HasErrorPrefix(answer, "ASK")):
		hint = hintCluster
	case redis.HasErrorPrefix(answer, "This instance has cluster support disabled"):
		hint = hintNoCluster
	default:
		return err
	}
	return &kindError{hint: hint, answer: answer.Error()}
}
