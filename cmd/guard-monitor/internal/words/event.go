package words

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/notify"
)

// Event says to a person on call what an event means.
func (l Lang) Event(ev notify.Event) string {
	s := l.sentence("key", quote(ev.Key), "who", l.reporter(ev), "at", moment(ev.CaughtAt), "row", l.row(ev), "became", l.say(became[ev.Outcome], ""),
		"first", l.first(ev), "n", strconv.Itoa(ev.Count), "verdict", quote(string(ev.Verdict)), "lost", l.lost(ev.Lost), "letter", l.letter(ev.Message), "call", l.call(ev.Call), "others", number(int64(ev.Count-1)))
	s.happened(ev)
	s.add(".", "。").addIf(ev.Count > 1 && !endsOutage(ev) && ev.Verdict != notify.VerdictUnavailable && ev.Verdict != notify.VerdictCommitLost && ev.Verdict != notify.VerdictDeadLetter,
		" This happened {n} times in a burst.", "在一次突发中发生了 {n} 次。")
	return s.String() + l.whose(ev)
}

// happened says what happened, to whom and when.
func (s *sentence) happened(ev notify.Event) {
	switch v := ev.Verdict; {
	case v == notify.VerdictOverlap:
		s.add("Two callers wrote under key {key} at once: the database refused the write of {who}{row} at {at}{became}", "两个调用者同时以键 {key} 写入：数据库于 {at} 拒绝了 {who}的写入{row}{became}")
	case v == notify.VerdictLost:
		s.add("The lock on key {key} was lost while {who} worked under it, noticed at {at}", "{who}以键 {key} 工作期间锁丢失，于 {at} ").
			addIf(ev.Outcome == notify.OutcomeRefused, " when the database refused its write", "数据库拒绝其写入时").add("{row}{became}", "发现{row}{became}")
	case v == notify.VerdictUnknownCommit && ev.Outcome != notify.OutcomeUnknown:
		s.add("The database did not answer the COMMIT of {who} under key {key}{row} at {at}", "数据库于 {at} 未应答 {who}以键 {key} 所做工作的 COMMIT{row}").
			addIf(ev.Outcome == notify.OutcomeCommitted, "; as was found out later, it was committed", "；事后查明，其已提交").
			addIf(ev.Outcome != notify.OutcomeCommitted, "; as was found out later, it was not committed", "；事后查明，其未提交")
	case v == notify.VerdictUnknownCommit:
		s.add("Nobody knows whether the work of {who} under key {key}{row} was committed: the database did not answer the COMMIT at {at}", "无人知道 {who}以键 {key} 所做的工作是否已提交：数据库于 {at} 未应答 COMMIT{row}")
	case v == notify.VerdictCommitLost:
		s.addIf(ev.Count == 1, "The database lacks 1 commit of {who} that it had acknowledged{lost}, noticed at {at}", "数据库缺少 {who}的 1 个已确认的提交{lost}，于 {at} 发现").
			addIf(ev.Count != 1, "The database lacks {n} commits of {who} that it had acknowledged{lost}, noticed at {at}", "数据库缺少 {who}的 {n} 个已确认的提交{lost}，于 {at} 发现")
	case v == notify.VerdictDeadLetter:
		undecided := ev.Message != nil && ev.Message.Undecided
		s.addIf(undecided, "{letter} of {who} was not accepted in time, and may have taken effect, noticed at {at}", "{who}的{letter}未及时被接受，可能已经生效，于 {at} 发现").
			addIf(!undecided, "{letter} of {who} was rejected at {at}", "{who}的{letter}于 {at} 被拒绝").
			addIf(ev.Count > 1, ", and {others} more of its topic", "，同主题另有 {others} 条").
			addIf(ev.Key != "", "; the messages of key {key} wait until somebody decides", "；键 {key} 的消息等待人工裁定").
			addIf(ev.Key == "", "; it waits until somebody decides", "；等待人工裁定")
	case v == notify.VerdictUndecided:
		s.add("Nobody knows what another service has made of {call} of {who}, noticed at {at}; it is not called again, and waits until somebody decides", "无人知道其他服务如何处理了 {who}的{call}，于 {at} 发现；不会再次调用，等待人工裁定")
	case v == notify.VerdictDegraded && !endsOutage(ev):
		s.add("{who} began to work without the lock at {at} because it could not be asked{first}; until it can, only the database guards the data",
			"{who}于 {at} 因无法询问锁而开始在没有锁的情况下工作{first}；在恢复之前，仅由数据库保护数据")
	case v == notify.VerdictDegraded && ev.Outcome == notify.OutcomeCommitted:
		s.add("{who} can ask the lock again, noticed at {at}; without it, guarded by the database alone{first}, operations committed: {n}", "{who}于 {at} 发现又能询问锁；此前在没有锁、仅由数据库保护的情况下提交了 {n} 个操作{first}")
	case v == notify.VerdictDegraded:
		s.add("{who} can ask the lock again, noticed at {at}; without it{first}, operations rolled back: {n}, and none is known to be committed",
			"{who}于 {at} 发现又能询问锁；此前在没有锁的情况下回滚了 {n} 个操作{first}，未发现已提交的操作")
	case v == notify.VerdictUnavailable:
		s.addIf(ev.Count == 1, "{who} refused 1 operation at {at}{first}", "{who}因无法获取锁而拒绝了 1 个操作（首个于 {at}{first}）").
			addIf(ev.Count != 1, "{who} refused {n} operations, the first at {at}{first}", "{who}因无法获取锁而拒绝了 {n} 个操作（首个于 {at}{first}）")
		s.add(", because the lock could not be acquired; nothing was changed", "；未作任何更改")
	default:
		s.add("An event of unknown verdict {verdict} came from {who} for key {key} at {at}", "{who}于 {at} 发来判定不明（{verdict}）的事件，键 {key}")
	}
}

// lost says when lost commits were acknowledged, by which server, and which one lacks them.
func (l Lang) lost(c *notify.LostCommits) string {
	if c == nil {
		return ""
	}
	return l.sentence("first", moment(c.FirstAt), "last", moment(c.LastAt), "server", quote(c.Server), "now", quote(c.Now)).
		add(" between {first} and {last} on {server}", "（{first} 至 {last}，由 {server} 确认").
		addIf(c.Now == c.Server, ", which was restarted", "，其后该服务器重启").
		addIf(c.Now != c.Server, "; the server is {now} now", "；现在的服务器是 {now}").
		add("", "）").String()
}

// letter names a message that became a dead letter.
func (l Lang) letter(m *notify.DeadLetter) string {
	if m == nil {
		return l.of("A message", "一条消息")
	}
	return l.sentence("id", quote(m.ID), "topic", quote(m.Topic), "tries", l.count(int64(m.Attempts), "time"), "stored", moment(m.StoredAt)).
		add("Message {id} (topic {topic}, stored at {stored}, tried {tries})", "消息 {id}（主题 {topic}，存储于 {stored}，已尝试 {tries} 次）").String()
}

// call names a request whose call to another service is undecided.
func (l Lang) call(c *notify.UndecidedCall) string {
	if c == nil {
		return l.of("a request", "一个请求")
	}
	return l.sentence("id", quote(c.ID), "operation", quote(c.Operation), "tries", l.count(int64(c.Tries), "time"), "since", moment(c.Since), "until", moment(c.Until)).
		add("the request with the id {id} (operation {operation}, reserved at {since}, called {tries} until {until})", "请求 {id}（操作 {operation}，预留于 {since}，截至 {until} 已调用 {tries} 次）").String()
}

func endsOutage(ev notify.Event) bool {
	return ev.Verdict == notify.VerdictDegraded && ev.Outcome != notify.OutcomeUnknown
}

func (l Lang) reporter(ev notify.Event) string {
	if ev.Instance == "" {
		return l.name(ev.Service) + l.of("", " ")
	}
	return l.name(ev.Service) + l.of(" (instance ", "（实例 ") + l.name(ev.Instance) + l.of(")", "）")
}

// first names the key of the first of many operations.
func (l Lang) first(ev notify.Event) string {
	switch {
	case ev.Key == "":
		return ""
	case ev.Verdict == notify.VerdictUnavailable:
		return l.of(" on key ", "，键 ") + quote(ev.Key)
	}
	return l.of(", first on key ", "（首个键 ") + quote(ev.Key) + l.of("", "）")
}

// row names the row that was written.
func (l Lang) row(ev notify.Event) string {
	if ev.Table == "" {
		return ""
	}
	columns := make([]string, 0, len(ev.Index))
	for _, c := range ev.Index[:min(len(ev.Index), 8)] {
		columns = append(columns, l.name(c))
	}
	versions := cmp.Or(ev.Versions, &notify.Versions{})
	return l.sentence("table", l.name(ev.Table), "columns", strings.Join(columns, ", "),
		"expected", number(versions.Expected), "found", number(versions.Found)).
		add(" on table {table}", "，表 {table}").
		addIf(len(columns) > 0, " ({columns})", "（{columns}）").
		addIf(ev.Versions != nil, ", which expected version {expected} and found {found}", "，期望版本 {expected}，实际版本 {found}").String()
}

var became = map[notify.Outcome]phrase{
	notify.OutcomeCommitted:  {"; its changes were committed", "；其更改已提交"},
	notify.OutcomeRefused:    {"; it was rolled back and changed nothing", "；已回滚，未作任何更改"},
	notify.OutcomeRolledBack: {"; it was rolled back and changed nothing", "；已回滚，未作任何更改"},
	notify.OutcomeUnknown:    {"; whether it changed anything is unknown", "；是否有所更改不得而知"},
}

// whose says whose lock it was, where it was kept, and who had it at the conflict.
func (l Lang) whose(ev notify.Event) string {
	var parts []string
	granted := !ev.AcquiredAt.IsZero()
	lock := l.sentence("owner", l.name(ev.Owner), "token", number(ev.Token), "granted", moment(ev.AcquiredAt), "ttl", ev.TTL.String()).
		add("the lock of owner {owner}", "持有者 {owner} 的锁").
		addIf(ev.Token != 0, " (token {token})", "（令牌 {token}）").
		addIf(granted, " was granted at {granted}", "于 {granted} 授予").
		addIf(granted && ev.TTL > 0, " for {ttl}", "，有效期 {ttl}")
	if ev.Owner != "" {
		parts = append(parts, lock.String())
	}
	if p := ev.Place; p != (notify.Place{}) {
		parts = append(parts, l.sentence("node", l.name(p.Node), "slot", strconv.Itoa(p.Slot), "entry", l.name(p.Entry)).
			addIf(ev.Owner == "", "the lock was ", "").
			addIf(p.Node != "", "kept on {node}", "锁存放于 {node}").
			addIf(p.Node == "", "kept on an unnamed node", "锁存放于未具名的节点").
			addIf(p.Slot >= 0, " (slot {slot})", "（槽 {slot}）").
			addIf(p.Entry != "", " as {entry}", "，名为 {entry}").String())
	}
	if p, known := holders[ev.HolderAtConflict]; known {
		other := ev.HolderOwner != "" && ev.HolderAtConflict == notify.HolderOther
		parts = append(parts, l.sentence("owner", l.name(ev.HolderOwner)).addIf(!other, p.en, p.zh).
			addIf(other, "at the conflict the key was held by owner {owner}", "冲突时该键由持有者 {owner} 持有").String())
	}
	if len(parts) == 0 {
		return ""
	}
	says := strings.Join(parts, l.of(", ", "，"))
	return l.of(" "+strings.ToUpper(says[:1])+says[1:]+".", says+"。")
}

var holders = map[notify.Holder]phrase{
	notify.HolderSelf:    {"at the conflict the key was still held by this owner, so somebody wrote without a valid lock", "冲突时该键仍由此持有者持有，可见有人在没有有效锁的情况下写入"},
	notify.HolderOther:   {"at the conflict the key was held by another caller", "冲突时该键由另一调用者持有"},
	notify.HolderNone:    {"at the conflict nobody held the key", "冲突时无人持有该键"},
	notify.HolderUnknown: {"who held the key at the conflict could not be asked", "冲突时由谁持有该键，无法查询"},
}

// moment is a time with its date and zone: readers mistake one zone for another.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }
