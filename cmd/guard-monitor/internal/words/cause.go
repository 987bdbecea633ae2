package words

import (
	"cmp"
	"slices"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// cause is what there is to say of a cause.
type cause struct {
	because         string // as it ends the first line of an alert
	name, why, next phrase
}

var causes = map[incident.Cause]cause{
	incident.Failover: {"a Redis failover lost locks", phrase{"Failover", "故障转移"},
		phrase{"Another Redis node took over, without the lock.", "另一个 Redis 节点接管，但没有该锁。"},
		phrase{"Find out why the old master ended (its log, the kernel's log), and whether the new one has a replica again. If locks must survive a failover, use redislock.Config.Replicas.", "查明旧主节点为何结束（其日志、内核日志），以及新主节点是否又有了副本。如果锁必须在故障转移后存活，请使用 redislock.Config.Replicas。"}},
	incident.Restart: {"a Redis process ended, and its memory with it", phrase{"Restart of Redis", "Redis 重启"},
		phrase{"A Redis process ended, and its memory with it.", "Redis 进程结束，其内存随之丢失。"},
		phrase{"Find out why the Redis process ended, and give it replicas: without persistence a restart forgets every lock.", "查明 Redis 进程为何结束，并为其配置副本：没有持久化时，重启会丢失所有锁。"}},
	incident.Eviction: {"Redis evicted keys", phrase{"Eviction", "键被逐出"},
		phrase{"Redis evicted keys to stay below its memory limit.", "Redis 为不超过内存上限而逐出了键。"},
		phrase{"First raise maxmemory, or move what else is there to another Redis. Only when there is room, set maxmemory-policy noeviction: a Redis that is full and may not evict grants no lock.", "先提高 maxmemory，或把其他数据移到另一个 Redis。有了余量之后，再设置 maxmemory-policy noeviction：内存已满且不允许逐出的 Redis 不会授予锁。"}},
	incident.Flushed: {"FLUSHALL or FLUSHDB emptied a Redis node", phrase{"Redis flushed", "Redis 被清空"},
		phrase{"FLUSHALL or FLUSHDB emptied a Redis node.", "FLUSHALL 或 FLUSHDB 清空了 Redis 节点。"},
		phrase{"Find who ran FLUSHALL or FLUSHDB: the evidence names the client if it is known. Keep locks on a Redis of their own, and take these commands away from everybody (ACL: -@dangerous).", "查明是谁执行了 FLUSHALL 或 FLUSHDB：证据中若知道客户端会指明。让锁使用单独的 Redis，并对所有人禁用这些命令（ACL：-@dangerous）。"}},
	incident.Deleted: {"locks were removed from Redis", phrase{"Lock deleted", "锁被删除"},
		phrase{"A command removed keys from a Redis node, or made them expire.", "有命令从 Redis 节点删除了键，或使其提前过期。"},
		phrase{"Find who removes keys on that node: scripts and consoles of that time, CLIENT LIST, MONITOR for a moment. Locks need no cleaning up: they expire by themselves.", "查明是谁在该节点上删除键：当时的脚本和控制台、CLIENT LIST、短时间的 MONITOR。锁不需要清理：它们会自行过期。"}},
	incident.Partition: {"a Redis node was cut off or stood still", phrase{"Partition", "网络分区"},
		phrase{"A living Redis node was cut off, or stood still.", "存活的 Redis 节点被隔离或停顿。"},
		phrase{"Look for what cut the node off or made it stand still: network, a suspended virtual machine, swapping, a slow command (SLOWLOG, LATENCY DOCTOR).", "查找节点被隔离或停顿的原因：网络、被挂起的虚拟机、内存交换、慢命令（SLOWLOG、LATENCY DOCTOR）。"}},
	incident.Overrun: {"a holder did not renew its lock in time", phrase{"Overrun", "持锁超时"},
		phrase{"The holder did not renew in time, with Redis healthy.", "Redis 正常，但持有者没有及时续期。"},
		phrase{"Look at the instance, not at Redis: long garbage collection, CPU limits, a suspended machine. Compare with its metrics at that time.", "检查实例而非 Redis：长时间垃圾回收、CPU 限额、机器被挂起。与当时的指标对照。"}},
	incident.DegradedPeer: {"an instance worked without locks", phrase{"Degraded peer", "对端降级运行"},
		phrase{"Another instance worked without the lock.", "另一个实例在没有锁的情况下工作。"},
		phrase{"Find out why that instance cannot reach Redis. Until then its operations are guarded by the database alone.", "查明该实例为何连不上 Redis。在此之前，其操作仅由数据库保护。"}},
	incident.Bypass: {"somebody wrote without a valid lock", phrase{"Bypass", "绕过锁写入"},
		phrase{"Somebody wrote without a valid lock, and nothing else explains it.", "有人在没有有效锁的情况下写入，且没有其他解释。"},
		phrase{"Find who writes this table outside guard.Do, or under another key: scripts, consoles, other services, a job that was forgotten.", "查找谁在 guard.Do 之外或以其他键写入此表：脚本、控制台、其他服务、被遗忘的任务。"}},
	incident.Unreachable: {"Redis could not be reached", phrase{"Redis unreachable", "Redis 不可达"},
		phrase{"The service could not reach a Redis that was well.", "Redis 正常，但服务无法连接到它。"},
		phrase{"Look at the network between the service and Redis, its limits of connections, passwords and certificates, and whether Redis rejects requests (OOM, READONLY, CLUSTERDOWN). guard-monitor reaches that Redis.", "检查服务与 Redis 之间的网络、连接数限制、密码和证书，以及 Redis 是否拒绝请求（OOM、READONLY、CLUSTERDOWN）。guard-monitor 能够连上该 Redis。"}},
	incident.UnknownCommit: {"the database did not answer the COMMIT", phrase{"Commit in doubt", "提交结果不明"},
		phrase{"The database did not say whether it committed.", "数据库没有说明是否已提交。"},
		phrase{"Check the rows of these keys by hand. Then look at the database and the network to it at that time: a restart, a failover, a proxy that cuts connections.", "手工核对这些键对应的行。然后检查当时的数据库及其网络：重启、故障转移、切断连接的代理。"}},
	incident.CommitLost: {"the database lost commits", phrase{"Commits lost", "提交丢失"},
		phrase{"The database lacks commits that it had acknowledged: a failover lost them, or a backup was restored.", "数据库缺少其已确认的提交：故障转移丢失了它们，或恢复了备份。"},
		phrase{"Find out whether the database failed over, restarted or was restored at that time. Keep the former server's data: it may still have these commits. Then find the requests between the two times in the service's log, and settle or repeat them: their callers were told that they took effect.", "查明当时数据库是否发生了故障转移、重启或恢复。保留原服务器的数据：其中可能仍有这些提交。然后在服务日志中找出这两个时间之间的请求，并逐一核定或重做：其调用者已被告知请求已生效。"}},
	incident.DeadLetter: {"messages were rejected and wait for a decision", phrase{"Dead letter", "死信"},
		phrase{"A route rejected a message that an operation had sent. It waits, and the other messages of its key wait behind it.", "路由拒绝了操作所发送的消息。该消息在等待，同一键的其他消息排在其后。"},
		phrase{"List the dead letters with belay-messages list, which shows why each was rejected. Correct the cause, then run belay-messages retry ID; or run belay-messages drop ID if the message shall never be sent.", "用 belay-messages list 列出死信，其中说明每条被拒绝的原因。消除原因后运行 belay-messages retry ID；若该消息不应再发送，则运行 belay-messages drop ID。"}},
	incident.Undecided: {"messages may or may not have taken effect", phrase{"Message undecided", "消息待裁定"},
		phrase{"A message was not accepted within the time in which it may be sent. It may have taken effect, and the other messages of its key wait behind it.", "消息未能在允许发送的时间内被接受。它可能已经生效，同一键的其他消息排在其后。"},
		phrase{"Ask the called service whether it has done what the message asks for, by the message's id. If it has, run belay-messages drop ID. If it certainly has not, run belay-messages -undecided retry ID. Then find out why it did not answer in time.", "用消息 ID 向被调用的服务查询是否已执行。若已执行，运行 belay-messages drop ID；若确定没有执行，运行 belay-messages -undecided retry ID。然后查明其未及时应答的原因。"}},
	incident.CallUndecided: {"calls to another service may or may not have taken effect", phrase{"Call undecided", "调用待裁定"},
		phrase{"A request has called another service, and no answer came within the time in which it may call. The call may have taken effect; what the request has reserved is still held.", "请求调用了其他服务，但在允许调用的时间内没有得到应答。调用可能已经生效；请求所预留的内容仍被占用。"},
		phrase{"Ask the other service, by the id of the call, what it has done. Store its answer by belay-calls accept ID or belay-calls refuse ID, and repeat the request, which then settles it. Then find out why no answer came in time.", "用调用的 ID 向其他服务查询其处理结果。用 belay-calls accept ID 或 belay-calls refuse ID 保存其应答，然后重复该请求以完成结算。最后查明为何未及时得到应答。"}},
	incident.HeartbeatSilent: {"the service no longer reports", phrase{"Heartbeat silent", "心跳中断"},
		phrase{"The service reports nothing, not even that it lives.", "服务没有任何上报，连存活也不上报。"},
		phrase{"Look whether the service runs and reaches its broker: as long as it is silent, its lock failures may go unseen.", "检查服务是否在运行并能连上消息代理：在其静默期间，锁故障可能不被察觉。"}},
	incident.Unknown: {"locks failed, cause unknown", phrase{"Cause not known", "原因不明"},
		phrase{"The evidence does not suffice for any known cause.", "证据不足以断定任何已知原因。"},
		phrase{"Read the evidence, the logs of the Redis node and of the instance at that time, and look who deletes keys (DEL, FLUSHALL, UNLINK).", "阅读证据以及当时 Redis 节点和实例的日志，查看谁在删除键（DEL、FLUSHALL、UNLINK）。"}},
}

// Cause is what a cause is called.
func (l Lang) Cause(c incident.Cause) string { return l.say(causes[c].name, string(c)) }

// reported are the causes that an event itself reports, or that are none: these are sure.
var reported = []incident.Cause{incident.Unreachable, incident.UnknownCommit, incident.CommitLost, incident.DeadLetter, incident.Undecided, incident.CallUndecided, incident.HeartbeatSilent, incident.Unknown}

// because is the cause of an incident as it ends the first line of an alert.
func because(i *incident.Incident) string {
	says := cmp.Or(causes[i.Cause].because, string(i.Cause))
	if i.Cause == incident.Failover && i.Effect.Failures == 0 {
		says = "a Redis failover"
	}
	switch {
	case slices.Contains(reported, i.Cause):
	case i.Confidence == incident.Low:
		return "possibly " + says
	case i.Confidence == incident.Medium:
		return "probably " + says
	}
	return says
}

// Confidence is how sure an explanation is, in a word.
func (l Lang) Confidence(c incident.Confidence) string {
	return l.say(confidences[c], l.of("not judged", "未评定"))
}

var confidences = map[incident.Confidence]phrase{
	incident.Low: {"low", "低"}, incident.Medium: {"medium", "中"}, incident.High: {"high", "高"},
}
