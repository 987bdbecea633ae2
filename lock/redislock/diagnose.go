package redislock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/redischeck"
	"github.com/belaygo/belay/lock"
)

var _ doctor.Diagnoser = (*Engine)(nil)

// Diagnose returns what is wrong with the servers, and with the rights that the engine has
// there. It acquires a lock that no operation uses, for a millisecond, and leaves nothing behind.
// It is a part of belay.Doctor.
func (e *Engine) Diagnose(ctx context.Context) []doctor.Finding {
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
func (e *Engine) addrOf(node *redis.Client) string { return cmp.Or(e.topology.addrOf(node), "Redis") }

// keyOfEach returns a key that each master has. A master without slots has none.
func (e *Engine) keyOfEach(ctx context.Context) (map[*redis.Client]string, error) {
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

// diagnoseNode tries what the engine does on the node that has key.
func (e *Engine) diagnoseNode(ctx context.Context, node *redis.Client, key string) []doctor.Finding {
	addr := e.addrOf(node)
	if found := e.diagnoseRights(ctx, node, addr, key); found != nil {
		return found
	}
	err := e.Probe(ctx, key)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lock.ErrRefused):
		return []doctor.Finding{doctor.RedisRejects.Failed(addr, err)}
	case errors.Is(err, lock.ErrDenied):
		return []doctor.Finding{doctor.RedisRights.Failed(addr, err)}
	}
	return []doctor.Finding{doctor.RedisServer.Failed(addr, err)}
}

// diagnoseRights runs each command that the engine or its scripts run, on the names that it
// uses during an outage. Some scripts go on without a command that is forbidden.
func (e *Engine) diagnoseRights(ctx context.Context, node *redis.Client, addr, key string) []doctor.Finding {
	name := e.lockName(key)
	pipe := node.Pipeline()
	for _, args := range e.commands(name) {
		pipe.Do(ctx, args...)
	}
	cmds, _ := pipe.Exec(ctx)
	sub, subscribe := e.topology.open(ctx, node), "subscribe"
	defer sub.Close()
	listen := sub.Subscribe
	if e.topology.sharded() {
		listen, subscribe = sub.SSubscribe, "ssubscribe"
	}
	_ = listen(ctx, channel(name))
	_, err := sub.ReceiveTimeout(ctx, time.Second)
	subscribed := redis.NewCmd(ctx, subscribe)
	subscribed.SetErr(err)

	var rights []string
	onlyKeys := true
	for _, cmd := range append(cmds, subscribed) {
		if err := cmd.Err(); redis.IsPermissionError(err) {
			right := e.rightFor(cmd.Name(), err)
			onlyKeys = onlyKeys && right[0] == '~'
			rights = append(rights, right)
		}
	}
	if rights == nil {
		return nil
	}
	slices.Sort(rights)
	found := doctor.RedisRights.Found(addr, "the user lacks %s", strings.Join(slices.Compact(rights), " "))
	if onlyKeys && e.cfg.Prefix == "" { // the locks may have names that it may touch
		found.Severity = doctor.Warning
	}
	return []doctor.Finding{found}
}

// rightFor returns the rule of an ACL that allows what was refused.
func (e *Engine) rightFor(command string, refusal error) string {
	switch text := refusal.Error(); {
	case strings.Contains(text, "channel"):
		return "&redisson_lock__channel:*"
	case strings.Contains(text, " key"):
		return "~" + e.cfg.Prefix + "*"
	}
	return "+" + command
}

// commands returns the commands of the documented ACL line that can be run by themselves. None of
// them writes: the keys do not exist, and the arguments of SET, HSET and ZADD are wrong. The server
// checks the user's rights before the arguments. So an error about the arguments shows that the
// user may write.
func (e *Engine) commands(name string) [][]any {
	probe := e.lockName("belay_probe:" + tagged(name))
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
	if e.cfg.Replicas > 0 {
		all = append(all, []any{"wait", 0, 1})
	}
	return all
}
