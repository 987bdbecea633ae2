// Package text makes untrusted strings safe to show to people.
package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Clip returns s if it has at most n bytes, else its start, cut between
// characters, and an ellipsis: n bytes in all for n ≥ 3.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := max(n-len(ellipsis), 0)
	for back := 1; back < utf8.UTFMax && end > 0 && !utf8.RuneStart(s[end]); back++ {
		end--
	}
	return s[:end] + ellipsis
}

// Line returns s as one line of printable text. Line ends, terminal escapes,
// characters that turn the direction of writing and bytes that are not UTF-8
// become Go escapes; all else, quotes and backslashes too, stays as it is.
func Line(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case strconv.IsPrint(r):
			b.WriteString(s[:size])
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// Bounds of JSON that is indented. Each bracket may add a level, which indents all
// that is inside, and hostile JSON may have ten thousand brackets.
const (
	maxBrackets = 64
	maxIndented = 512 << 10 // bytes
)

// Lines returns raw as lines of printable text. JSON is indented if that does not
// make it very large.
func Lines(raw []byte) string {
	var indented bytes.Buffer
	if bytes.Count(raw, []byte("["))+bytes.Count(raw, []byte("{")) <= maxBrackets &&
		json.Indent(&indented, raw, "", "  ") == nil && indented.Len() <= maxIndented {
		raw = indented.Bytes()
	}
	lines := strings.Split(string(raw), "\n")
	for i, l := range lines {
		lines[i] = Line(l)
	}
	return strings.Join(lines, "\n")
}
