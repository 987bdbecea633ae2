package words

import (
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// Effect says in sentences what became of an incident's operations, the worst
// first. The keys in them are text from anybody.
func (l Lang) Effect(e incident.Effect) (list []string) {
	say := func(n int64, en, zh string) {
		if n <= 0 {
			return
		}
		these, were, their := l.of("these ", "这 ")+grouped(n)+l.of(" operations", " 个操作"), grouped(n)+" operations were", "their"
		if n == 1 {
			these, were, their = l.of("1 operation", " 1 个操作"), "1 operation was", "its"
		}
		list = append(list, l.sentence("n", grouped(n), "these", these, "were", were, "their", their, "keys", l.keys(e)).add(en, zh).String())
	}
	say(e.Unknown, "look at {these}, which may or may not have been committed{keys}", "请核对{these}，其是否已提交不得而知{keys}")
	say(e.Undone, "{were} rolled back and changed nothing", "{n} 个操作已回滚，未改变任何数据")
	say(e.Committed, "{were} committed though {their} lock was lost, and no second writer got at rows that a unique index or a version covers",
		"{n} 个操作在锁丢失的情况下提交，且受唯一索引或版本保护的行没有被第二个写入者改动")
	say(e.Failures-e.Unknown-e.Undone-e.Committed, "{were} found to have taken effect", "{n} 个操作查明已生效")
	say(e.Refused, "{were} refused and changed nothing", "{n} 个操作被拒绝，未改变任何数据")
	say(e.Without, "{were} committed without a lock, guarded by the database alone", "{n} 个操作在没有锁的情况下提交，仅由数据库保护")
	return list
}

// keys lists the doubtful keys, as in `, keys "order:1", "order:2" and others`.
func (l Lang) keys(e incident.Effect) string {
	if len(e.Doubtful) == 0 {
		return ""
	}
	quoted := make([]string, len(e.Doubtful))
	for i, key := range e.Doubtful {
		quoted[i] = quote(key)
	}
	list := l.of(", keys ", "，键 ") + strings.Join(quoted, l.of(", ", "、"))
	if e.Unknown > int64(len(e.Doubtful)) && len(e.Doubtful) == incident.MaxDoubtful {
		list += l.of(" and others", " 等")
	}
	return list
}
