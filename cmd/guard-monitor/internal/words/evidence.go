package words

import (
	"strconv"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// findings are the rows of evidence that are one phrase.
var findings = map[incident.Kind]phrase{
	incident.Seen:           {"{entry}, {before}", "{entry}，{before}"},
	incident.NotTheMaster:   {"the lock was granted by {redis}, which the timeline does not have as the master before", "授予锁的是 {redis}，而时间线上此前的主节点并不是它"},
	incident.NothingLost:    {"no lost replication was seen, which is a lower bound: the old master was last asked before it ended", "未见到复制数据丢失，但这只是下限：最后一次询问旧主节点是在它终止之前"},
	incident.MasterMissing:  {"whether the old master died or was cut off shows when it answers again", "旧主节点是终止还是被隔离，要等它再次应答才能知道"},
	incident.KeysKept:       {"the new process has no fewer keys than the old one was last seen with", "新进程的键不少于旧进程最后一次被看到时的键"},
	incident.ProcessMissing: {"the process is gone, and was not seen to come back yet", "进程已不在，尚未见到它恢复"},
	incident.NodeMissing:    {"whether its process lives shows when it answers again", "其进程是否存活，要等它再次应答才能知道"},
	incident.EvictedUnknown: {"Redis does not tell which keys it evicted", "Redis 不会说明逐出了哪些键"},
	incident.DeletedUnknown: {"Redis does not tell which keys a command removed", "Redis 不会说明命令删除了哪些键"},
	incident.RoutineUnknown: {"many keys are removed there, and Redis does not tell which", "那里有许多键被删除，Redis 不会说明是哪些"},
	incident.FlushedBefore:  {"it may have been just before the lock was granted", "它也可能刚好发生在授予锁之前"},
	incident.FlushedOne:     {"FLUSHDB empties one database, and Redis does not tell which", "FLUSHDB 只清空一个数据库，Redis 不会说明是哪一个"},
	incident.NotExpired: {"a lock that is renewed does not expire, unless EXPIRE or PEXPIRE shortened its time to live, or its holder's machine stood still",
		"续期的锁不会过期，除非 EXPIRE 或 PEXPIRE 缩短了它的有效期，或持有者的机器曾停顿"},
	incident.EarlierHolder: {"nobody has reported to have lost the lock on this key, but what follows may have taken it from an earlier holder", "没有人报告丢失此键的锁，但下述情况可能使此前的持有者失去了它"},
	incident.AlsoHeld:      {"the operation of which the next row is held key {key}, too, and may have written without its lock", "下一行所述的操作也持有键 {key}，可能在没有其锁的情况下写入"},
	incident.NoOtherHolder: {"no other holder of this key has reported to have lost the lock, and no instance of {service} to work without it", "此键没有其他持有者报告丢失锁，{service} 也没有实例报告在没有锁的情况下工作"},
	incident.PeerWithout:   {"instance {instance} began, or ceased, to work without the lock, {before}: it could not ask {redis}", "实例 {instance} 开始或停止了在没有锁的情况下工作，{before}：它无法询问 {redis}"},
	incident.ClockOff:      {"the clock of instance {instance} is {off} guard-monitor's: its times are corrected by that", "实例 {instance} 的时钟比 guard-monitor {off}：其时间已据此校正"},
	incident.ClockWrong:    {"the clock of instance {instance} says that it is {said}: this event is dated by its arrival", "实例 {instance} 的时钟显示 {said}：此事件以其到达时间为准"},
	incident.NotExplained:  {"guard-monitor could not explain this event: its log says why", "guard-monitor 未能解释此事件，原因见其日志"},
	incident.LastHeartbeat: {"the last heartbeat of {service} came at {at} from instance {instance}, which beats every {for}", "{service} 的最后一次心跳于 {at} 来自实例 {instance}，其心跳间隔为 {for}"},
	incident.NoHeartbeat:   {"guard-monitor could receive heartbeats without a break since {from}, and got none of another instance", "guard-monitor 自 {from} 起可不间断地接收心跳，但未收到该服务其他实例的心跳"},
	incident.Switched: {"the locks of {service} {moved} from the engine {origin} to {target} {span}{made}: meanwhile a lock is granted only if both engines grant it",
		"{service} 的锁{span}{moved}从引擎 {origin} 迁移到 {target}{made}：其间只有两个引擎都授予时才授予锁"},
	incident.Healthy: {"{node} answered guard-monitor from {from} to {to}, and no failover, restart, eviction or partition of it was seen",
		"{node} 从 {from} 到 {to} 一直应答 guard-monitor，未见到它发生故障转移、重启、逐出或分区"},
	incident.Unwell:        {"Redis was not well at that time", "当时 Redis 状况不佳"},
	incident.NoNode:        {"the event names no Redis node", "事件没有指明 Redis 节点"},
	incident.NotWatched:    {"{node} is not among the nodes that guard-monitor watches", "{node} 不在 guard-monitor 监视的节点之中"},
	incident.TooLongAgo:    {"nothing is known of a part of that time: it is too long ago", "那段时间有一部分情况不明：时间过于久远"},
	incident.NeverAnswered: {"nothing is known of a part of that time: this Redis has never answered guard-monitor", "那段时间有一部分情况不明：此 Redis 从未应答 guard-monitor"},
	incident.NotLookedAt:   {"nothing is known of a part of that time: guard-monitor has not looked at this Redis since", "那段时间有一部分情况不明：此后 guard-monitor 再未查看此 Redis"},
	incident.NobodyLooked:  {"nothing is known of a part of that time: {entry}", "那段时间有一部分情况不明：{entry}"},
}

// Evidence says what a row of evidence states.
func (l Lang) Evidence(e incident.Evidence) string {
	switch {
	case e.Kind == incident.Sentence:
		return e.Stored
	case e.Kind == incident.Reported && e.Report != nil:
		return l.report(*e.Report, e.At)
	}
	entry := ""
	if e.Entry != nil {
		entry = l.Entry(*e.Entry)
	}
	before := l.of("seen "+e.For.String()+" before the event", "在事件前 "+e.For.String()+" 见到")
	off := l.of(e.For.String()+" behind", "慢 "+e.For.String())
	if e.For < 0 {
		before = l.of("seen "+e.For.Abs().String()+" after the event", "在事件后 "+e.For.Abs().String()+" 见到")
		off = l.of(e.For.Abs().String()+" ahead of", "快 "+e.For.Abs().String())
	}
	key := ""
	if e.Report != nil {
		key = quote(e.Report.Key)
	}
	var moved incident.Between
	if e.Switch != nil {
		moved = *e.Switch
	}
	p := findings[e.Kind]
	return l.sentence("key", key, "origin", name(moved.From), "target", name(moved.To), "moved", l.moved(e), "span", l.span(e), "made", l.made(moved), "node", name(e.Node), "instance", quote(e.Node), "redis", name(e.Redis), "service", quote(e.Service),
		"entry", entry, "before", before, "off", off, "for", e.For.String(),
		"said", moment(e.From), "at", clock(e.At), "from", clock(e.From), "to", clock(e.To)).add(p.en, p.zh).String()
}

// moved says that locks moved, or still move.
func (l Lang) moved(e incident.Evidence) string {
	if e.To.IsZero() {
		return l.of("have been moving", "正")
	}
	return l.of("moved", "")
}

// span says from when to when the locks moved of which a row says so.
func (l Lang) span(e incident.Evidence) string {
	if e.To.IsZero() {
		return l.of("since "+clock(e.From), "自 "+clock(e.From)+" 起")
	}
	return l.of("from "+clock(e.From)+" to "+clock(e.To), "于 "+clock(e.From)+" 至 "+clock(e.To)+" 间")
}

// made says who made a switch.
func (l Lang) made(b incident.Between) string {
	if b.By == "" {
		return ""
	}
	return l.of(", made by "+quote(b.By), "（由 "+quote(b.By)+" 发起）")
}

// What an event says that was not about an outage.
var (
	losses = map[notify.Loss]phrase{
		notify.LossExpired:   {"; its holder did not renew it until {deadline}, when it could no longer be believed in, and went on {late} later", "；持有者直到 {deadline} 锁不再可信时仍未续期，并在其后 {late} 继续工作"},
		notify.LossUnrenewed: {"; the holder's renewals went without an answer until {deadline}, when it could no longer be believed in", "；持有者的续期直到 {deadline} 锁不再可信时都没有应答"},
		notify.LossGone:      {"; it was gone, or another's, before its time was up", "；锁在到期之前就已消失，或已属于他人"},
		notify.LossMaxHold:   {"; its holder had it for longer than its limit allows", "；持有者持锁超过了允许的上限"},
	}
	outcomes = map[notify.Outcome]phrase{
		notify.OutcomeCommitted: {"committed", "已提交"}, notify.OutcomeRefused: {"refused", "被拒绝"},
		notify.OutcomeRolledBack: {"rolled_back", "已回滚"}, notify.OutcomeUnknown: {"unknown", "结果不明"},
	}
)

// report says what an event says that was caught at a time.
func (l Lang) report(r incident.Report, at time.Time) string {
	s := l.sentence("key", quote(r.Key), "service", quote(r.Service), "n", l.count(r.Count, "commit"), "lost", l.lost(r.Lost), "letter", l.letter(r.Message), "call", l.call(r.Call), "others", number(r.Count-1), "outcome", l.say(outcomes[r.Outcome], string(r.Outcome)),
		"granted", clock(r.Granted), "node", name(r.Place.Node), "slot", strconv.Itoa(r.Place.Slot), "entry", quote(r.Place.Entry),
		"ttl", r.TTL.String(), "held", at.Sub(r.Granted).Round(time.Millisecond).String(),
		"deadline", clock(r.Deadline), "late", at.Sub(r.Deadline).Round(time.Millisecond).String())
	switch {
	case r.Verdict == notify.VerdictUnknownCommit:
		s.add("the database did not answer the COMMIT of key {key}, so nobody knows whether it took effect; that the lock failed is not known", "数据库未应答键 {key} 的 COMMIT，因此无人知道它是否生效；锁是否失效也不得而知")
	case r.Verdict == notify.VerdictCommitLost:
		s.add("{service} missed {n} in two looks ten seconds apart{lost}", "{service} 在相隔十秒的两次查找中都未找到 {n} 个提交{lost}")
	case r.Verdict == notify.VerdictDeadLetter:
		undecided := r.Message != nil && r.Message.Undecided
		s.addIf(undecided, "{letter} of {service} was not accepted in time, and may have taken effect", "{service} 的{letter}未及时被接受，可能已经生效").
			addIf(!undecided, "{letter} of {service} was rejected", "{service} 的{letter}被拒绝").
			addIf(r.Count > 1, ", and {others} more of its topic", "，同主题另有 {others} 条").
			addIf(r.Key != "", "; the messages of key {key} wait", "；键 {key} 的消息在等待")
	case r.Verdict == notify.VerdictUndecided:
		s.add("nobody knows what another service has made of {call} of {service}, under key {key}", "无人知道其他服务如何处理了 {service} 的{call}，键 {key}")
	case r.Verdict == notify.VerdictDegraded && r.Outcome == notify.OutcomeUnknown:
		s.add("{service} began to work without the lock, since Redis could not be asked", "{service} 因无法询问 Redis 而开始在没有锁的情况下工作")
	case r.Verdict == notify.VerdictDegraded:
		s.add("{service} can ask Redis for the lock again; it had worked without", "{service} 又能向 Redis 请求锁；此前在没有锁的情况下工作")
	case r.Verdict == notify.VerdictUnavailable:
		s.add("{service} refused operations, since their lock could not be acquired", "{service} 因无法获取锁而拒绝了操作")
	case r.Verdict == notify.VerdictOverlap:
		s.add("two callers wrote under key {key} at once, and the database refused this one", "两个调用者同时以键 {key} 写入，数据库拒绝了这一个")
	default:
		s.add("the lock on key {key} was lost while its holder worked ({outcome})", "键 {key} 的锁在持有者工作期间丢失（{outcome}）")
	}
	if !r.Granted.IsZero() {
		s.add("; granted at {granted}", "；锁于 {granted}").
			addIf(r.Place.Node != "", " by {node}", " 由 {node}").
			addIf(r.Place.Node != "" && r.Place.Slot >= 0, " (slot {slot})", " 的槽 {slot}").
			addIf(r.Place.Entry != "", " as {entry}", " 以 {entry} 为名").
			add(" for {ttl}, {held} before the event", " 授予，有效期 {ttl}，早于事件 {held}")
	}
	held := holders[r.Holder]
	return s.add(losses[r.Loss].en, losses[r.Loss].zh).addIf(held.en != "", "; "+held.en, "；"+held.zh).String()
}
