package words

import (
	"slices"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// An entry's kind is shown as a label. What it says has several forms where one
// would not do: form chooses.
var entries = map[watch.Kind]struct {
	label phrase
	says  []phrase
}{
	watch.Watching: {phrase{"watching", "开始监视"}, []phrase{
		{"guard-monitor began to watch {redis}", "guard-monitor 开始监视 {redis}"},
		{"guard-monitor did not look at {redis} for {gap} s", "guard-monitor 有 {gap} 秒没有查看 {redis}"},
		{"{node} refused guard-monitor for {gap} s ({reason})", "{node} 有 {gap} 秒拒绝了 guard-monitor（{reason}）"},
	}},
	watch.Failover: {phrase{"failover", "故障转移"}, []phrase{
		{"{node} took over from {peer}{offsets}", "{node} 接管了 {peer}{offsets}"},
		{"{node} took over the slots {shard} from {peer} (config epoch {new_epoch}, before {old_epoch}){offsets}", "{node} 从 {peer} 接管了槽 {shard}（配置纪元 {new_epoch}，此前为 {old_epoch}）{offsets}"},
	}},
	watch.Restart: {phrase{"restart", "重启"}, []phrase{
		{"{node} was restarted: it was a {role} with {keys_before}, the new process is a {new_role} with {keys_after}", "{node} 已重启：原为{role}，有 {keys_before} 个键；新进程为{new_role}，有 {keys_after} 个键"},
	}},
	watch.Down: {phrase{"down", "无应答"}, []phrase{
		{"{node}, a {role}, does not answer", "{node}（{role}）没有应答"},
		{"{node}, a {role}, refuses connections: no process listens there", "{node}（{role}）拒绝连接：那里没有进程在监听"},
	}},
	watch.Up: {phrase{"up", "恢复应答"}, []phrase{
		{"{node} answers again after {silence} s", "{node} 在 {silence} 秒后恢复应答"},
		{"{node} answers again after {silence} s; its process lived all the time", "{node} 在 {silence} 秒后恢复应答；其进程一直存活"},
	}},
	watch.Split: {phrase{"split", "意见分歧"}, []phrase{
		{"{node} and {peer} both act as the master", "{node} 与 {peer} 都以主节点自居"},
		{"{node} and {peer} both serve slots of {slots} (config epochs {epoch} and {peer_epoch})", "{node} 与 {peer} 都在服务 {slots} 中的槽（配置纪元 {epoch} 与 {peer_epoch}）"},
		{"{peer} has no answer from {node}, which answers guard-monitor ({seen_by} see it so)", "{peer} 得不到 {node} 的应答，而 {node} 应答 guard-monitor（{seen_by} 个节点这样认为）"},
	}},
	watch.Agreed: {phrase{"agreed", "恢复一致"}, []phrase{{"the nodes agree again on {node}", "各节点对 {node} 的看法恢复一致"}}},
	watch.Resharding: {phrase{"resharding", "槽迁移"}, []phrase{
		{"{node} now serves the slots {shard}, some of which {from} had", "{node} 现在服务槽 {shard}，其中一部分原属 {from}"},
		{"{moving} of {node} begin to move", "{node} 的 {moving} 个槽开始迁移"},
	}},
	watch.Eviction: {phrase{"eviction", "键被逐出"}, []phrase{
		{"{node} evicted {evicted} to stay below its memory limit of {limit} (policy {policy})", "{node} 为不超过 {limit} 字节的内存上限逐出了 {evicted} 个键（策略 {policy}）"},
	}},
	watch.Flush: {phrase{"flush", "清空"}, []phrase{
		{"{calls} on {node}, {caller}", "{calls}（在 {node} 上），{caller}"},
		{"{calls} on {node}, {caller}; it had {keys_before} before, and {keys_left} after", "{calls}（在 {node} 上），{caller}；此前有 {keys_before} 个键，此后有 {keys_left} 个"},
	}},
	watch.Deletion: {phrase{"deletion", "键被删除"}, []phrase{
		{"{calls} on {node}, {caller}", "{calls}（在 {node} 上），{caller}"},
		{"{calls} on {node}, {caller}; such calls are routine there", "{calls}（在 {node} 上），{caller}；此类调用在那里很常见"},
	}},
	watch.Expiry: {phrase{"expiry", "键过期"}, []phrase{{"{expired} expired on {node}", "{node} 上有 {expired} 个键过期"}}},
	watch.ClockSet: {phrase{"clock set", "时钟被调整"}, []phrase{
		{"the clock of {node} was set forward by {set} s: keys expire that much earlier", "{node} 的时钟被向前调整 {set} 秒：键会相应提前过期"},
		{"the clock of {node} was set back by {set} s: keys expire that much later", "{node} 的时钟被向后调整 {set} 秒：键会相应推迟过期"},
	}},
	watch.ClusterDown: {phrase{"cluster down", "集群不可用"}, []phrase{{"the cluster is down as {node} sees it", "在 {node} 看来集群不可用"}}},
	watch.ClusterOK:   {phrase{"cluster ok", "集群恢复"}, []phrase{{"the cluster is up again as {node} sees it", "在 {node} 看来集群已恢复"}}},
}

// form returns which of its kind's phrases fits an entry.
func form(e watch.Entry) int {
	n := e.Numbers
	which := func(conds ...bool) int { return slices.Index(conds, true) + 1 }
	switch e.Kind {
	case watch.Watching:
		return which(e.Node == "" && !e.Since.IsZero(), e.Node != "")
	case watch.Failover:
		return which(e.Shard != "")
	case watch.Down:
		return which(n[watch.Refused] == 1)
	case watch.Up:
		return which(n[watch.SameProcess] == 1)
	case watch.Split:
		return which(e.Names[watch.Slots] != "", n[watch.SeenBy] > 0)
	case watch.Resharding:
		return which(n[watch.Moving] > 0)
	case watch.Flush:
		_, counted := n[watch.KeysBefore]
		return which(counted)
	case watch.Deletion:
		return which(n[watch.Routine] == 1)
	case watch.ClockSet:
		return which(n[watch.ForwardMS] < 0)
	}
	return 0
}

// Kind is the label of entries of a kind.
func (l Lang) Kind(k watch.Kind) string { return l.say(entries[k].label, string(k)) }

// role is the role of a node, which has one as soon as it has answered.
func (l Lang) role(s string) string {
	switch s {
	case "master":
		return l.of("master", "主节点")
	case "replica":
		return l.of("replica", "副本")
	}
	return l.of("node not heard of before", "此前未见过的节点")
}

// Entry says what the watcher saw.
func (l Lang) Entry(e watch.Entry) string {
	if stored, ok := e.Names[watch.Text]; ok {
		return stored
	}
	says := entries[e.Kind].says
	if len(says) == 0 {
		return string(e.Kind)
	}
	n, p := e.Numbers, says[form(e)]
	return l.sentence("node", e.Node, "peer", e.Peer, "redis", e.Cluster, "shard", e.Shard,
		"gap", seconds(e.At.Sub(e.Since)), "silence", seconds(millis(n[watch.SilentMS])), "set", seconds(millis(n[watch.ForwardMS]).Abs()),
		"role", l.role(e.Names[watch.Role]), "new_role", l.role(e.Names[watch.NewRole]), "offsets", l.offsets(n),
		"keys_before", l.count(n[watch.KeysBefore], "key"), "keys_after", l.count(n[watch.KeysAfter], "key"), "keys_left", number(n[watch.KeysAfter]),
		"old_epoch", number(n[watch.OldEpoch]), "new_epoch", number(n[watch.NewEpoch]), "epoch", number(n[watch.Epoch]), "peer_epoch", number(n[watch.PeerEpoch]),
		"seen_by", l.count(n[watch.SeenBy], "node"), "moving", l.count(n[watch.Moving], "slot"), "expired", l.count(n[watch.Expired], "key"),
		"evicted", l.count(n[watch.Evicted], "key"), "limit", l.count(n[watch.MaxMemory], "byte"), "policy", e.Names[watch.Policy],
		"slots", e.Names[watch.Slots], "from", e.Names[watch.From], "reason", e.Names[watch.Reason],
		"calls", l.calls(n), "caller", l.caller(e)).add(p.en, p.zh).String()
}

// offsets says how far the replication of a failed master had come.
func (l Lang) offsets(numbers map[string]int64) string {
	lost, known := numbers[watch.LostBytes]
	return l.sentence("old", number(numbers[watch.OldOffset]), "new", number(numbers[watch.NewOffset]), "lost", l.count(lost, "byte")).
		addIf(known, "; the old master was last seen at replication offset {old}, the new one's history begins at {new}",
			"；旧主节点最后见到的复制偏移为 {old}，新主节点自己的历史从 {new} 开始").
		addIf(lost > 0, ": at least {lost} lost", "：至少丢失 {lost} 字节").String()
}

// calls says how often commands were called, as in "DEL was called 3 times, UNLINK
// once".
func (l Lang) calls(numbers map[string]int64) string {
	var parts []string
	for _, command := range watch.Commands {
		n := numbers[command]
		if n == 0 {
			continue
		}
		times := l.of(number(n)+" times", number(n)+" 次")
		if n == 1 {
			times = l.of("once", "1 次")
		}
		called := " "
		if len(parts) == 0 {
			called = l.of(" was called ", " 被调用 ")
		}
		parts = append(parts, strings.ToUpper(command)+called+times)
	}
	return strings.Join(parts, l.of(", ", "，"))
}

// caller says who called the commands, as far as Redis tells.
func (l Lang) caller(e watch.Entry) string {
	callers, known := e.Numbers[watch.Callers]
	switch {
	case !known:
		return l.of("by a client that is not known", "客户端不明")
	case callers == 0:
		return l.of("by a script, or by a client that has left or gone on", "由脚本或已断开、已执行其他命令的客户端调用")
	}
	return l.sentence("client", text.Line(e.Names[watch.Client]), "name", quote(e.Names[watch.ClientName]),
		"user", quote(e.Names[watch.User]), "more", number(callers-1)).
		add("by {client}", "由 {client} 调用").
		addIf(e.Names[watch.ClientName] != "", " named {name}", "，名为 {name}").
		addIf(e.Names[watch.User] != "", " as user {user}", "，用户 {user}").
		addIf(callers > 1, " and {more} more", "，另有 {more} 个").String()
}
