package text_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

func TestClip(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want string
	}{
		{"", 0, ""},
		{"order:1", 7, "order:1"},
		{"order:12", 7, "orde…"},
		{"订单订单", 12, "订单订单"},
		{"订单订单", 11, "订单…"},
		{"订单订单", 8, "订…"},
		{"abc", 0, "…"},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80", 8, "\x80\x80…"}, // not UTF-8: no start to go back to
	}
	for _, tt := range tests {
		if got := text.Clip(tt.in, tt.n); got != tt.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestLine(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", `order:1 "quoted" \n`, `order:1 "quoted" \n`},
		{"chinese", "锁失效", "锁失效"},
		{"line ends", "a\nb\r\nc\u2028d\u0085", `a\nb\r\nc\u2028d\u0085`},
		{"terminal escape", "\x1b[2J\u009b31m", `\x1b[2J\u009b31m`},
		{"direction", "a\u202egnp", `a\u202egnp`},
		{"nul and delete", "\x00\x7f", `\x00\x7f`},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"replacement character", "\ufffd", "\ufffd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := text.Line(tt.in); got != tt.want {
				t.Errorf("Line(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	wide := strings.Repeat("[", 60) + strings.Repeat("1,", 8<<10) + "1" + strings.Repeat("]", 60)
	for in, want := range map[string]string{
		`{"a":[1,"\u001b"]}`: "{\n  \"a\": [\n    1,\n    \"\\u001b\"\n  ]\n}",
		"a\n\x1b[2J\xff":     "a\n" + `\x1b[2J\xff`,
		"":                   "",
		deep:                 deep,
		wide:                 wide,
	} {
		if got := text.Lines([]byte(in)); got != want {
			t.Errorf("Lines(%.100q) = %.100q, want %.100q", in, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("order:1")
	f.Add("a\n\x1b[31m\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := text.Line(s)
		if !utf8.ValidString(got) {
			t.Errorf("Line(%q) = %q is not UTF-8", s, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }); i >= 0 {
			t.Errorf("Line(%q) = %q has an unprintable character at %d", s, got, i)
		}
		if again := text.Line(got); again != got {
			t.Errorf("Line(%q) = %q, but Line of that is %q", s, got, again)
		}
		if clipped := text.Clip(s, 16); len(clipped) > 16 {
			t.Errorf("Clip(%q, 16) has %d bytes", s, len(clipped))
		}
	})
}
