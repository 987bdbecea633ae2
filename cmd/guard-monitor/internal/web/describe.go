package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/describe"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/notify"
)

const (
	maxDescription = 2 << 10 // bytes
	maxQuoted      = 128     // bytes of a foreign text in a sentence
)

// describe tells what an event means.
func (l lang) describe(ev notify.Event) string {
	says := describe.Event(ev)
	if l == chinese {
		says = describeChinese(ev)
	}
	return text.Line(text.Clip(says, maxDescription))
}

// describeChinese says what describe.Event says.
func describeChinese(ev notify.Event) string {
	says := whatChinese(ev) + "。"
	if ev.Count > 1 && !endsOutage(ev) && ev.Verdict != notify.VerdictUnavailable {
		says += fmt.Sprintf("在一次突发中发生了 %d 次。", ev.Count)
	}
	if parts := lockChinese(ev); len(parts) > 0 {
		says += strings.Join(parts, "，") + "。"
	}
	return says
}

func whatChinese(ev notify.Event) string {
	key, who, at := quoted(ev.Key), reporterChinese(ev), clockChinese(ev.CaughtAt)
	switch ev.Verdict {
	case notify.VerdictOverlap:
		return fmt.Sprintf("两个调用者同时以键 %s 写入：数据库于 %s 拒绝了 %s的写入%s%s", key, at, who, rowChinese(ev), becameChinese(ev.Outcome))
	case notify.VerdictLost:
		if ev.Outcome == notify.OutcomeRefused {
			return fmt.Sprintf("%s以键 %s 工作期间锁丢失，于 %s 数据库拒绝其写入时发现%s%s", who, key, at, rowChinese(ev), becameChinese(ev.Outcome))
		}
		return fmt.Sprintf("%s以键 %s 工作期间锁丢失，于 %s 发现%s%s", who, key, at, rowChinese(ev), becameChinese(ev.Outcome))
	case notify.VerdictUnknownCommit:
		return fmt.Sprintf("无人知道 %s以键 %s 所做的工作是否已提交：数据库于 %s 未应答 COMMIT%s", who, key, at, rowChinese(ev))
	case notify.VerdictDegraded:
		return degradedChinese(ev, who, at)
	case notify.VerdictUnavailable:
		return fmt.Sprintf("%s因无法获取锁而拒绝了 %d 个操作（首个于 %s，键 %s）；未作任何更改", who, ev.Count, at, key)
	}
	return fmt.Sprintf("%s于 %s 发来判定不明（%s）的事件，键 %s", who, at, quoted(string(ev.Verdict)), key)
}

func degradedChinese(ev notify.Event, who, at string) string {
	first := ""
	if ev.Key != "" {
		first = "（首个键 " + quoted(ev.Key) + "）"
	}
	switch {
	case !endsOutage(ev):
		return fmt.Sprintf("%s于 %s 因无法询问锁而开始在没有锁的情况下工作%s；在恢复之前，仅由数据库保护数据", who, at, first)
	case ev.Outcome == notify.OutcomeCommitted:
		return fmt.Sprintf("%s于 %s 发现又能询问锁；此前在没有锁、仅由数据库保护的情况下提交了 %d 个操作%s", who, at, ev.Count, first)
	}
	return fmt.Sprintf("%s于 %s 发现又能询问锁；此前在没有锁的情况下回滚了 %d 个操作%s，未发现已提交的操作", who, at, ev.Count, first)
}

func endsOutage(ev notify.Event) bool {
	return ev.Verdict == notify.VerdictDegraded && ev.Outcome != notify.OutcomeUnknown
}

// lockChinese is whose lock it was, where it was kept, and who had it at the
// conflict.
func lockChinese(ev notify.Event) (parts []string) {
	if ev.Owner != "" {
		lock := "持有者 " + quoted(ev.Owner) + " 的锁"
		if ev.Token != 0 {
			lock += "（令牌 " + strconv.FormatInt(ev.Token, 10) + "）"
		}
		if !ev.AcquiredAt.IsZero() {
			lock += "于 " + clockChinese(ev.AcquiredAt) + " 授予"
		}
		parts = append(parts, lock)
		if ev.TTL > 0 {
			parts = append(parts, "有效期 "+ev.TTL.String())
		}
	}
	if ev.Place.Node != "" {
		place := "锁存放于 " + quoted(ev.Place.Node)
		if ev.Place.Slot >= 0 {
			place += "（槽 " + strconv.Itoa(ev.Place.Slot) + "）"
		}
		parts = append(parts, place)
	}
	switch ev.HolderAtConflict {
	case notify.HolderSelf:
		parts = append(parts, "冲突时该键仍由此持有者持有，可见有人在没有有效锁的情况下写入")
	case notify.HolderOther:
		parts = append(parts, "冲突时该键由另一调用者持有")
	case notify.HolderNone:
		parts = append(parts, "冲突时无人持有该键")
	case notify.HolderUnknown:
		parts = append(parts, "冲突时由谁持有该键，无法查询")
	}
	return parts
}

func reporterChinese(ev notify.Event) string {
	if ev.Instance == "" {
		return quoted(ev.Service) + " "
	}
	return quoted(ev.Service) + "（实例 " + quoted(ev.Instance) + "）"
}

func rowChinese(ev notify.Event) string {
	if ev.Table == "" {
		return ""
	}
	row := "，表 " + quoted(ev.Table)
	if v := ev.Versions; v != nil {
		row += fmt.Sprintf("，期望版本 %d，实际版本 %d", v.Expected, v.Found)
	}
	return row
}

func becameChinese(o notify.Outcome) string {
	switch o {
	case notify.OutcomeCommitted:
		return "；其更改已提交"
	case notify.OutcomeRefused, notify.OutcomeRolledBack:
		return "；已回滚，未作任何更改"
	case notify.OutcomeUnknown:
		return "；是否有所更改不得而知"
	}
	return ""
}

// quoted keeps a foreign text apart from the sentence.
func quoted(s string) string { return strconv.Quote(text.Clip(s, maxQuoted)) }

func clockChinese(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }
