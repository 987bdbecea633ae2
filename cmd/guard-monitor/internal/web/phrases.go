package web

import (
	"regexp"
	"strings"
)

// The timeline and the evidence are stored as English sentences. For Chinese
// pages they are taken apart into the phrases below, from left to right. A text
// that does not come out whole, such as one that was cut, stays English.

// phrase is a part of a sentence. {1}, {2}... are its gaps, in order.
type phrase struct {
	pattern *regexp.Regexp
	zh      string
}

// gaps are what stands for a foreign text or a number, by the letter that marks
// it in a phrase. Quoted text is taken as a whole, so none can pass for a phrase.
var gaps = strings.NewReplacer(
	`\{q\}`, `("(?:[^"\\]|\\.)*"(?:\.\.\.)?)`, // quoted
	`\{k\}`, `("(?:[^"\\]|\\.)*"(?:, "(?:[^"\\]|\\.)*")*)`, // several, quoted
	`\{n\}`, `("(?:[^"\\]|\\.)*"|[^\s;,()"]*)`, // a node or another name, quoted unless it is one word
	`\{l\}`, `([^\s;,()"]+(?:, [^\s;,()"]+)*)`, // nodes
	`\{x\}`, `([^;,"]+)`, // the name of a Redis
	`\{r\}`, `([0-9,.-]*[0-9.])`, // slots
	`\{t\}`, `(\d\d:\d\d:\d\d\.\d\d\d UTC)`,
	`\{d\}`, `(-?[0-9.hmnµs]+)`, // a duration
	`\{i\}`, `(-?\d+)`,
	`\{s\}`, `s?`, // of a plural
)

// sayChinese translates a text of the timeline or of evidence; ok is false if
// it cannot.
func sayChinese(text string) (zh string, ok bool) {
	var b strings.Builder
	for text != "" {
		next, said := oneChinese(text)
		if next == "" {
			return "", false
		}
		b.WriteString(said)
		text = text[len(next):]
	}
	return b.String(), true
}

// oneChinese translates the phrase at the start of a text; next is empty if there
// is none. No two phrases begin alike.
func oneChinese(text string) (next, said string) {
	for _, p := range phrases {
		if found := p.pattern.FindStringSubmatch(text); found != nil {
			return found[0], p.fill(found[1:])
		}
	}
	return "", ""
}

// fill puts what was found in the gaps into the Chinese phrase, all at once:
// what is found may look like a gap.
func (p phrase) fill(found []string) string {
	var pairs []string
	for i, s := range found {
		if zh, ok := words[s]; ok {
			s = zh
		}
		pairs = append(pairs, "{"+string(rune('1'+i))+"}", s)
	}
	return strings.NewReplacer(pairs...).Replace(p.zh)
}

// words are what the gaps may hold besides names and numbers.
var words = map[string]string{
	"master": "主节点", "replica": "副本",
	"committed": "已提交", "refused": "被拒绝", "rolled_back": "已回滚", "unknown": "结果不明",
}

func newPhrases(pairs ...[2]string) (list []phrase) {
	for _, p := range pairs {
		pattern := regexp.MustCompile(`^` + gaps.Replace(regexp.QuoteMeta(p[0])))
		list = append(list, phrase{pattern, p[1]})
	}
	return list
}
