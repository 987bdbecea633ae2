package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/lockengine"
)

// A kindError reports that the server is of another kind than the client, which only
// the first request reveals. Nothing was executed.
type kindError struct{ hint, answer string }

func (e *kindError) Error() string {
	return fmt.Sprintf("%s (the server says: %s)", e.hint, strings.TrimSpace(e.answer))
}

func (e *kindError) Is(target error) bool {
	return target == lockengine.ErrDenied || target == lockengine.ErrNotSent
}

// Hints for a kindError.
const (
	hintCluster    = "the server is a node of a Redis Cluster: open it by redis+cluster://, with IsClusterMode, or with a cluster client"
	hintNoCluster  = "the server is no Redis Cluster: open it by redis://, or by redis+sentinel:// if it is under Sentinel"
	hintSentinel   = "the server knows no scripts: if it is a Sentinel, open it by redis+sentinel://host:26379/name, or with a MasterName"
	hintNoSentinel = "the server is no Sentinel: open it by redis:// or redis+cluster://, or name the port of a Sentinel"
	hintName       = "Sentinel knows no master of this name"
)

// pingKeys are sixteen keys in slots that are far from each other: a node of a cluster does
// not have all of them, unless it is the only one.
var pingKeys = sync.OnceValue(func() (keys []string) {
	for i := 0; len(keys) < 16; i++ {
		if key := "belay_probe:{" + strconv.Itoa(i) + "}"; slot(key)*16/slots == len(keys) {
			keys = append(keys, key)
		}
	}
	return keys
})

// ping returns nil if the server answers. A client for no cluster also queries keys: a
// Sentinel and a node of a cluster answer a PING as any server does.
func (e *engine) ping(ctx context.Context) error {
	if e.topology.cluster != nil {
		return e.client.Ping(ctx).Err()
	}
	var answer *redis.StatusCmd
	asked, err := e.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		answer = p.Ping(ctx)
		for _, key := range pingKeys() {
			p.Exists(ctx, e.lockName(key))
		}
		return nil
	})
	for _, cmd := range asked {
		if _, wrong := errors.AsType[*kindError](e.topology.explain(cmd.Err())); wrong {
			return cmd.Err()
		}
	}
	if answer.Val() == "" { // if there was no connection, no command has an error
		return err
	}
	return nil
}

// explain returns a kindError if err shows that the server is of another kind.
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
	case unknown("evalsha"), unknown("cluster"), unknown("exists"):
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
