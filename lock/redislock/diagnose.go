package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/redischeck"
	"github.com/belaygo/belay/lock/lockengine"
)

// Diagnose returns the faults of the servers, and the rights that the engine lacks there. It
// acquires a lock that no operation uses, for a millisecond, and leaves nothing behind. It is a
// part of belay.Doctor.
func (e *engine) Diagnose(ctx context.Context) []doctor.Finding {
	err := e.Ping(ctx)
	if kind, ok := errors.AsType[*kindError](err); ok {
		return []doctor.Finding{doctor.RedisServer.Found("Redis", "the server says: %s", kind.answer).Fixed("%s", kind.hint)}
	}
	found := redischeck.Servers(ctx, e.client, e.addrOf)
	if e.topology.cannotSubscribe != nil { // it is a client of the user's own kind
		if err != nil {
			found = append(found, doctor.RedisServer.Failed("Redis", err))
		}
		return found
	}
	keys, err := e.keyOfEach(ctx)
	if err != nil {
		return append(found, doctor.RedisServer.Failed("Redis", err))
	}
	for node, key := range keys {
		away := func(f doctor.Finding) bool { return f.Check == doctor.RedisServer.Name && f.Subject == e.addrOf(node) }
		if !slices.ContainsFunc(found, away) {
			found = append(found, e.diagnoseNode(ctx, node, key)...)
		}
	}
	return found
}

// addrOf returns the address of a node. That of Sentinel's master is unknown before it
// was reached.
func (e *engine) addrOf(node *redis.Client) string { return cmp.Or(e.topology.addrOf(node), "Redis") }

// keyOfEach returns a key that each master has. A master without slots has none.
func (e *engine) keyOfEach(ctx context.Context) (map[*redis.Client]string, error) {
	masters := 1
	if e.topology.cluster != nil {
		masters = 0
		var mu sync.Mutex
		err := e.topology.cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			masters++
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	const enough = 1000 // keys, for slots are even
	keys := make(map[*redis.Client]string)
	for i := 0; i < enough && len(keys) < masters; i++ {
		key := "belay_probe:doctor" + strconv.Itoa(i) // no operation has it
		node, err := e.topology.master(ctx, e.lockName(key))
		if err != nil {
			return keys, err
		}
		keys[node] = cmp.Or(keys[node], key)
	}
	return keys, nil
}

// diagnoseNode tries the engine's requests on the node that has key.
func (e *engine) diagnoseNode(ctx context.Context, node *redis.Client, key string) []doctor.Finding {
	addr := e.addrOf(node)
	if found := e.diagnoseRights(ctx, node, addr, key); found != nil {
		return found
	}
	err := e.tryScripts(ctx, key)
	answer, answered := errors.AsType[redis.Error](err)
	_, unknown := errors.AsType[*kindError](err)
	switch {
	case err == nil:
		return nil
	case unknown, answered && says(answer, prefixesScript):
		return []doctor.Finding{doctor.RedisScripts.Failed(addr, err)}
	case errors.Is(err, lockengine.ErrRefused):
		return []doctor.Finding{doctor.RedisRejects.Failed(addr, err)}
	case errors.Is(err, lockengine.ErrDenied):
		return []doctor.Finding{doctor.RedisRights.Failed(addr, err)}
	}
	return []doctor.Finding{doctor.RedisServer.Failed(addr, err)}
}

// tryScripts runs each script on the lock of a probe.
func (e *engine) tryScripts(ctx context.Context, key string) error {
	if err := e.Probe(ctx, key); err != nil {
		return err
	}
	r := lockengine.Request{Key: probeKey(e.lockName(key)), Owner: "doctor:1"}
	if _, err := e.Inspect(ctx, r.Key); err != nil {
		return err
	}
	for _, err := range append(e.Renew(ctx, []lockengine.Request{r}, time.Millisecond), e.Release(ctx, r)) {
		if !errors.Is(err, lockengine.ErrNotHeld) {
			return err
		}
	}
	return nil
}

// diagnoseRights runs each command that the engine or its scripts run, on the names that it
// uses during an outage. Some scripts continue without a command that is forbidden.
func (e *engine) diagnoseRights(ctx context.Context, node *redis.Client, addr, key string) []doctor.Finding {
	name := e.lockName(key)
	pipe := node.Pipeline()
	for _, args := range e.commands(name) {
		pipe.Do(ctx, args...)
	}
	cmds, _ := pipe.Exec(ctx)
	releases := e.subscribe(ctx, node, channel(name), e.topology.sharded())
	cmds = append(cmds, releases)
	if e.tracker != nil {
		cmds = append(cmds, e.subscribe(ctx, node, invalidations, false))
	}

	var rights []string
	works := true // without them
	for _, cmd := range cmds {
		if err := cmd.Err(); redis.IsPermissionError(err) {
			right := e.rightFor(cmd, err)
			works = works && (right[0] == '~' && e.cfg.Prefix == "" || slices.Contains(trackingRights, right))
			rights = append(rights, right)
		}
	}
	switch {
	case rights == nil && releases.Err() != nil: // it needs a new connection
		return []doctor.Finding{doctor.RedisServer.Failed(addr, fmt.Errorf("a new connection: %w", releases.Err()))}
	case rights == nil:
		return nil
	}
	slices.Sort(rights)
	found := doctor.RedisRights.Found(addr, "the user lacks %s", strings.Join(slices.Compact(rights), " "))
	if works { // the locks may have names that it may touch
		found.Severity = doctor.Warning
	}
	return []doctor.Finding{found}
}

// subscribe tries to subscribe to a channel.
func (e *engine) subscribe(ctx context.Context, node *redis.Client, channel string, sharded bool) redis.Cmder {
	sub := e.topology.open(ctx, node)
	defer sub.Close()
	listen, command := sub.Subscribe, "subscribe"
	if sharded {
		listen, command = sub.SSubscribe, "ssubscribe"
	}
	_ = listen(ctx, channel)
	_, err := sub.ReceiveTimeout(ctx, time.Second)
	cmd := redis.NewCmd(ctx, command, channel)
	cmd.SetErr(err)
	return cmd
}

// trackingRights are the rights without which only renewals find losses.
var trackingRights = []string{"+client|tracking", "+client|id", "&" + invalidations}

// rightFor returns the rule of an ACL that allows the refused command.
func (e *engine) rightFor(cmd redis.Cmder, refusal error) string {
	command, args := cmd.Name(), cmd.Args()
	switch text := refusal.Error(); {
	case strings.Contains(text, "channel") && args[1] == invalidations:
		return "&" + invalidations
	case strings.Contains(text, "channel"):
		return "&redisson_lock__channel:*"
	case strings.Contains(text, " key"):
		return "~" + e.cfg.Prefix + "*"
	case command == "client":
		return fmt.Sprintf("+client|%s", args[1])
	}
	return "+" + command
}

// commands returns the commands of the documented ACL line that can be run alone. None of them
// writes: the keys do not exist, and the arguments of SET, HSET and ZADD are wrong. The server
// checks the user's rights before the arguments. So an error about the arguments shows that the
// user may write.
func (e *engine) commands(name string) [][]any {
	probe := e.lockName(probeKey(name))
	marker, line := e.beside("done", name), e.beside("line", name)
	const me, wrong = "doctor", "wrong"
	all := [][]any{
		{"eval", "return 1", 1, probe}, {"evalsha", inspectScript.sha, 1, probe},
		{"hset", probe, me, 1, wrong}, {"pexpire", probe, 1}, {"exists", probe}, {"hexists", probe, me}, {"hkeys", probe},
		{"hlen", probe}, {"pttl", probe}, {"hdel", probe, me},
		{"set", marker, 1, wrong}, {"get", marker},
		{"zadd", line, wrong, me}, {"zscore", line, me}, {"zcount", line, 0, 0}, {"zpopmin", line}, {"zrem", line, me},
		{"time"}, {e.topology.publish(), channel(name), "doctor"},
	}
	if e.tracker != nil {
		all = append(all, []any{"client", "tracking", "off"}, []any{"client", "id"})
	}
	if e.cfg.Replicas > 0 {
		all = append(all, []any{"wait", 0, 1})
	}
	return all
}
