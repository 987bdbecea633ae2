package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/describe"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// sampleTexts are sentences as the timeline and the evidence have them.
var sampleTexts = map[string]string{
	"127.0.0.1:7004 took over the slots 0-5460,6000 from 127.0.0.1:7001 (config epoch 7, before 1); the old master was last seen at replication " +
		"offset 220, the new one's history begins at 100: at least 120 bytes lost, seen 1.2s before the event": "127.0.0.1:7004 从 127.0.0.1:7001 接管了槽 0-5460,6000（配置纪元 7，此前为 1）" +
		"；旧主节点最后见到的复制偏移为 220，新主节点自己的历史从 100 开始：至少丢失 120 字节，在事件前 1.2s 见到",
	"10.0.0.2:6379 took over from 10.0.0.1:6379; the old master was last seen at replication offset 7, the new one's history begins at 7": "" +
		"10.0.0.2:6379 接管了 10.0.0.1:6379；旧主节点最后见到的复制偏移为 7，新主节点自己的历史从 7 开始",
	`the lock on key "a\"; granted {1}" was lost while its holder worked (rolled_back); granted at 03:02:01.000 UTC by 10.0.0.1:6379 (slot 7) for 30s, 1m5.25s before the event`: "" +
		`键 "a\"; granted {1}" 的锁在持有者工作期间丢失（已回滚）；锁于 03:02:01.000 UTC 由 10.0.0.1:6379 的槽 7 授予，有效期 30s，早于事件 1m5.25s`,
	`the lock on key "k" was lost while its holder worked (refused); granted at 03:02:01.000 UTC by "h:1; at the conflict nobody had the key" (slot 7) for 30s, 5s before the event`: "" +
		`键 "k" 的锁在持有者工作期间丢失（被拒绝）；锁于 03:02:01.000 UTC 由 "h:1; at the conflict nobody had the key" 的槽 7 授予，有效期 30s，早于事件 5s`,
	`"h:1 (\"x\")" is not among the nodes that guard-monitor watches`:                        `"h:1 (\"x\")" 不在 guard-monitor 监视的节点之中`,
	"nothing is known of a part of that time: guard-monitor did not look at main for 12.5 s": "那段时间有一部分情况不明：guard-monitor 有 12.5 秒没有查看 main",
	"10.0.0.1:6379 refused guard-monitor for 12.5 s (INFO: WRONGPASS invalid username-password pair or user is disabled.)": "" +
		"10.0.0.1:6379 有 12.5 秒拒绝了 guard-monitor（INFO: WRONGPASS invalid username-password pair or user is disabled.）",
	"[::1]:7001 was restarted: it was a master with 1 key, the new process is a replica with 0 keys": "[::1]:7001 已重启：原为主节点，有 1 个键；新进程为副本，有 0 个键",
	"10.0.0.1:6379, a master, refuses connections: no process listens there":                         "10.0.0.1:6379（主节点）拒绝连接：那里没有进程在监听",
	`look at these 7 operations, which may or may not have been committed, keys "order:1", "order:\"2\"" and others`: "" +
		`请核对这 7 个操作，其是否已提交不得而知，键 "order:1", "order:\"2\"" 等`,
	`DEL was called 2 times, UNLINK once on h:1, by h:2 named "job" as user "ops" and 2 more; such calls are routine there`: "" +
		`DEL 被调用 2 次，UNLINK 1 次（在 h:1 上），由 h:2 调用，名为 "job"，用户 "ops"，另有 2 个；此类调用在那里很常见`,
	"FLUSHALL was called once on h:1, by a script, or by a client that has left or gone on; it had 12 keys before, and 0 after": "" +
		"FLUSHALL 被调用 1 次（在 h:1 上），由脚本或已断开、已执行其他命令的客户端调用；此前有 12 个键，此后有 0 个",
	"h:1 now serves the slots 1-2, some of which h:2, h:3 had": "h:1 现在服务槽 1-2，其中一部分原属 h:2, h:3",
}

func TestSayChinese(t *testing.T) {
	for text, want := range sampleTexts {
		if got, ok := sayChinese(text); got != want || !ok {
			t.Errorf("%s\n is %s\nwant %s", text, got, want)
		}
	}
	for _, text := range []string{"something else", "h:1 took over from h:2 and more", "the lock on key \"cut off…", `two callers wrote under key x"`} {
		if got, ok := sayChinese(text); ok {
			t.Errorf("%s is said to be %s", text, got)
		}
	}
}

// Each phrase stands alone for a sentence, with whatever is in its gaps.
func TestPhrases(t *testing.T) {
	sample := strings.NewReplacer(`("(?:[^"\\]|\\.)*"(?:\.\.\.)?)`, `"order:1"`, `("(?:[^"\\]|\\.)*"(?:, "(?:[^"\\]|\\.)*")*)`, `"order:1", "order:2"`,
		`("(?:[^"\\]|\\.)*"|[^\s;,()"]*)`, "10.0.0.1:1", `([^\s;,()"]+(?:, [^\s;,()"]+)*)`, "h:1, h:2",
		`([^;,"]+)`, "main", `([0-9,.-]*[0-9.])`, "0-5,7,...", `(\d\d:\d\d:\d\d\.\d\d\d UTC)`, "03:02:01.000 UTC", `(-?[0-9.hmnµs]+)`, "1.5", `(-?\d+)`, "7", "s?", "s")
	gap := regexp.MustCompile(`\{\d\}`)
	for _, p := range phrases {
		source := strings.TrimPrefix(p.pattern.String(), "^")
		text := regexp.MustCompile(`\\([^\w])`).ReplaceAllString(sample.Replace(source), "$1")
		zh, ok := sayChinese(text)
		if !ok || zh != p.fill(p.pattern.FindStringSubmatch(text)[1:]) || gap.MatchString(zh) {
			t.Errorf("%q is %q, %t", text, zh, ok)
		}
		if strings.IndexFunc(zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) < 0 {
			t.Errorf("%q has no Chinese", zh)
		}
		if n := p.pattern.NumSubexp(); strings.Contains(p.zh, "{"+strconv.Itoa(n+1)+"}") || n > 0 && !strings.Contains(p.zh, "{"+strconv.Itoa(n)+"}") {
			t.Errorf("%q has not the gaps of %q", p.zh, source)
		}
	}
}

// Every sentence that is in the sources of watch and incident is known.
func TestSentencesAreKnown(t *testing.T) {
	var all strings.Builder
	for _, p := range phrases {
		source := regexp.MustCompile(`\\([^\w])`).ReplaceAllString(strings.TrimPrefix(p.pattern.String(), "^"), "$1")
		all.WriteString(strings.ReplaceAll(source, "s?", "") + "\n")
	}
	known := all.String()
	found := 0
	for _, dir := range []string{"../watch", "../incident"} {
		for _, sentence := range sentences(t, dir) {
			found++
			for _, part := range regexp.MustCompile(`%[a-z]`).Split(sentence, -1) {
				if part = strings.Trim(part, " ,"); !strings.Contains(known, part) && !strings.Contains(known, strings.TrimSuffix(part, "s")) {
					t.Errorf("%s says %q, which no phrase has: %q", dir, sentence, part)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d sentences found", found)
	}
}

// sentences are the texts of at least three words, without errors, questions to
// Redis, and what is translated elsewhere.
func sentences(t *testing.T, dir string) (list []string) {
	t.Helper()
	pkgs, err := parser.ParseDir(token.NewFileSet(), dir, func(f fs.FileInfo) bool { //nolint:staticcheck // one package
		return !strings.HasSuffix(f.Name(), "_test.go")
	}, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	skipped := map[string]bool{"config.go": true, "target.go": true, "look.go": true, "sentinel.go": true, "member.go": true, "watcher.go": true,
		"silence.go": true, "tracker.go": true, "desk.go": true, "revise.go": true}
	for _, pkg := range pkgs {
		for name, file := range pkg.Files {
			if skipped[name[strings.LastIndex(name, "/")+1:]] {
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if f, ok := n.(*ast.FuncDecl); ok && f.Name.Name == "nextStep" || isError(n) {
					return false
				}
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if s, err := strconv.Unquote(lit.Value); err == nil && len(strings.Fields(s)) >= 3 && s != silentStep {
					list = append(list, s)
				}
				return true
			})
		}
	}
	return list
}

const silentStep = "Look whether the service runs and reaches its broker: as long as it is silent, its lock failures may go unseen."

func isError(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (f.Sel.Name == "New" || f.Sel.Name == "Errorf")
}

// What an explanation says comes out in Chinese.
func TestEvidenceInChinese(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	const hostile = "h:1; its holder had it for longer than its limit allows"
	found := 0
	for _, verdict := range verdicts {
		for _, holder := range []notify.Holder{"", notify.HolderSelf, notify.HolderOther, notify.HolderNone, notify.HolderUnknown} {
			for _, loss := range []notify.Loss{"", notify.LossExpired, notify.LossUnrenewed, notify.LossGone, notify.LossMaxHold} {
				for _, kind := range []watch.Kind{"", watch.Failover, watch.Down, watch.Watching} {
					rows := func(node string) []incident.Evidence {
						f := incident.Facts{Watched: kind != "", SeenAt: at, From: at.Add(-time.Hour), Event: notify.Event{
							Verdict: verdict, Outcome: notify.OutcomeUnknown, Service: "orders", Instance: "orders-1", Key: "order:1", HolderAtConflict: holder, Loss: loss,
							AcquiredAt: at.Add(-5 * time.Second), CaughtAt: at, TTL: 30 * time.Second, Deadline: at.Add(25 * time.Second), Place: notify.Place{Node: node, Slot: 5},
						}}
						if kind != "" {
							f.Timeline = []watch.Entry{{At: at.Add(-time.Second), Since: at.Add(-2 * time.Second), Kind: kind, Node: "h:2", Peer: "h:1", Shard: "0-9",
								Text: "h:2 took over from h:1", Numbers: map[string]int64{watch.LostBytes: 0}}}
						}
						return incident.Explain(f).Evidence
					}
					for _, e := range append(rows("h:1"), rows(hostile)...) {
						found++
						zh, ok := sayChinese(e.Text)
						if !ok {
							t.Errorf("no Chinese for %s", e.Text)
						}
						if loss != notify.LossMaxHold && strings.Contains(zh, "允许的上限") {
							t.Errorf("the node speaks for guard-monitor in %s: %s", e.Text, zh)
						}
					}
				}
			}
		}
	}
	if found < 400 {
		t.Errorf("only %d rows", found)
	}
}

func TestDescribeChinese(t *testing.T) {
	ev := notify.Event{
		Service: "orders", Instance: "orders-1", Key: "order:1", Table: "orders", Owner: "a:1", Token: 7, Count: 3, TTL: 10 * time.Second,
		AcquiredAt: time.Date(2026, 5, 4, 3, 2, 0, 0, time.UTC), CaughtAt: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
		Place: notify.Place{Node: "h:1", Slot: 5}, Versions: &notify.Versions{Expected: 3, Found: 4},
	}
	for _, c := range []struct {
		verdict notify.Verdict
		outcome notify.Outcome
		holder  notify.Holder
		want    string
	}{
		{notify.VerdictOverlap, notify.OutcomeRefused, notify.HolderOther, `两个调用者同时以键 "order:1" 写入：数据库于 2026-05-04 03:02:01.000 UTC 拒绝了 "orders"（实例 "orders-1"）的写入，表 "orders"，期望版本 3，实际版本 4；已回滚，未作任何更改。在一次突发中发生了 3 次。持有者 "a:1" 的锁（令牌 7）于 2026-05-04 03:02:00.000 UTC 授予，有效期 10s，锁存放于 "h:1"（槽 5），冲突时该键由另一调用者持有。`},
		{notify.VerdictLost, notify.OutcomeCommitted, "", "期间锁丢失，于 2026-05-04 03:02:01.000 UTC 发现，表 \"orders\"，期望版本 3，实际版本 4；其更改已提交。"},
		{notify.VerdictLost, notify.OutcomeRefused, notify.HolderSelf, "数据库拒绝其写入时发现"},
		{notify.VerdictUnknownCommit, notify.OutcomeUnknown, notify.HolderNone, "是否已提交"},
		{notify.VerdictDegraded, notify.OutcomeUnknown, "", "仅由数据库保护数据"},
		{notify.VerdictDegraded, notify.OutcomeCommitted, notify.HolderUnknown, "提交了 3 个操作"},
		{notify.VerdictDegraded, notify.OutcomeRefused, "", "未发现已提交的操作"},
		{notify.VerdictUnavailable, notify.OutcomeRolledBack, "", `因无法获取锁而拒绝了 3 个操作（首个于 2026-05-04 03:02:01.000 UTC，键 "order:1"）；未作任何更改。持有者`},
	} {
		ev.Verdict, ev.Outcome, ev.HolderAtConflict = c.verdict, c.outcome, c.holder
		if got := chinese.describe(ev); !strings.Contains(got, c.want) {
			t.Errorf("%s %s is %s\nwant %s", c.verdict, c.outcome, got, c.want)
		}
		if got := english.describe(ev); got != describe.Event(ev) {
			t.Errorf("English is %s", got)
		}
	}
}

func BenchmarkSayChinese(b *testing.B) {
	for b.Loop() {
		for text := range sampleTexts {
			_, _ = sayChinese(text)
		}
	}
}
