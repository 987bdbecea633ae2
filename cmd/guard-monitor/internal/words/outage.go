package words

import (
	"slices"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// outage is what there is to say of an incident in which operations were refused. What went
// wrong with locks is not the point then: operations are refused until Redis is back.
type outage struct{ is, was, why, next phrase }

var outages = map[incident.Cause]outage{
	incident.Restart: {phrase{"Redis is down", "Redis 已停止"}, phrase{"Redis was down", "Redis 曾停止"},
		phrase{"A Redis process ended. Operations whose locks it keeps are refused until it is back.", "Redis 进程结束。在其恢复之前，由其存放锁的操作会被拒绝。"},
		phrase{"Start the Redis process again, if it is not back. Then find out why it ended (its log, the kernel's log), and give it replicas.", "如果 Redis 进程尚未恢复，请先启动它。然后查明它为何结束（其日志、内核日志），并为其配置副本。"}},
	incident.Partition: {phrase{"Redis does not answer", "Redis 无应答"}, phrase{"Redis did not answer", "Redis 曾无应答"},
		phrase{"A Redis node was cut off, or stood still. Operations whose locks it keeps are refused until it answers.", "Redis 节点被隔离或停顿。在其恢复应答之前，由其存放锁的操作会被拒绝。"},
		phrase{"Bring the node back, if it does not answer: look for what cut it off or made it stand still (network, a suspended virtual machine, swapping, a slow command).", "如果节点没有应答，请先使其恢复：查找它被隔离或停顿的原因（网络、被挂起的虚拟机、内存交换、慢命令）。"}},
	incident.Failover: {phrase{"Redis failover", "Redis 故障转移"}, phrase{"Redis failover", "Redis 故障转移"},
		phrase{"Another Redis node took over. Operations were refused until then.", "另一个 Redis 节点接管。在此之前操作被拒绝。"},
		phrase{"Check that operations are no longer refused, and that the new master has a replica. Then find out why the old master ended (its log, the kernel's log).", "确认操作不再被拒绝，且新主节点有副本。然后查明旧主节点为何结束（其日志、内核日志）。"}},
	incident.Unreachable: {phrase{"Redis cannot be reached", "Redis 不可达"}, phrase{"Redis could not be reached", "Redis 曾不可达"},
		causes[incident.Unreachable].why, causes[incident.Unreachable].next},
}

// outageOf returns what there is to say of an incident in which operations were refused.
func outageOf(i incident.Incident) (o outage, ok bool) {
	o, ok = outages[i.Cause]
	return o, ok && i.Current().Refused > 0
}

// over reports whether Redis is back, as far as the evidence of an incident shows.
func over(i incident.Incident) bool {
	return !i.State.Open() || slices.ContainsFunc(i.Evidence, func(e incident.Evidence) bool {
		return e.Entry != nil && slices.Contains([]watch.Kind{watch.Up, watch.Restart, watch.ClusterOK}, e.Entry.Kind)
	})
}

// Title is what an incident is called.
func (l Lang) Title(i incident.Incident) string {
	o, ok := outageOf(i)
	switch {
	case !ok:
		return l.Cause(i.Cause)
	case over(i):
		return l.say(o.was, "")
	}
	return l.say(o.is, "")
}

// Headline is the title of an incident, and how many operations were refused.
func (l Lang) Headline(i incident.Incident) string {
	title := l.Title(i)
	n := i.Current().Refused
	if n == 0 {
		return title
	}
	return l.sentence("title", title, "n", grouped(n)).
		addIf(n == 1, "{title}: {n} operation refused", "{title}：{n} 个操作被拒绝").
		addIf(n != 1, "{title}: {n} operations refused", "{title}：{n} 个操作被拒绝").String()
}

// Why says what it means for the service.
func (l Lang) Why(i incident.Incident) string {
	if o, ok := outageOf(i); ok {
		return l.say(o.why, "")
	}
	return l.say(causes[i.Cause].why, string(i.Cause))
}

// Next says what to do now.
func (l Lang) Next(i incident.Incident) string {
	if o, ok := outageOf(i); ok {
		return l.say(o.next, "")
	}
	if i.Cause == incident.UnknownCommit && i.Effect.Unknown == 0 {
		return l.say(settled, "")
	}
	return l.say(causes[i.Cause].next, l.say(causes[incident.Unknown].next, ""))
}

// settled is what to do when all COMMITs without an answer are settled.
var settled = phrase{"All of them are settled. Look at the database and the network to it at that time: a restart, a failover, a proxy that cuts connections.",
	"所有操作均已核定。检查当时的数据库及其网络：重启、故障转移、切断连接的代理。"}

// grouped is a number of operations, which may be large, as in 7,780.
func grouped(n int64) string {
	digits := number(n)
	var b strings.Builder
	for k, d := range digits {
		if k > 0 && (len(digits)-k)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
