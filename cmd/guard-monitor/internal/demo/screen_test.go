package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// show returns what a screen shows of a small story.
func show(t *testing.T, lively, colour bool, width int) string {
	t.Helper()
	var out strings.Builder
	s := &screen{out: &out, lively: lively, colour: colour, width: func() int { return width }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody reads
	s.text(bold, "A story in one part.")
	s.step(ctx, "It begins")
	s.say(ctx, "shop-a", "says a sentence that is too long for one line of the screen, even of a wide one")
	s.item(ctx, "one of the things that it names, which takes more than one line of the screen")
	s.check(ctx, check{ok: true, want: "well"})
	s.check(ctx, check{got: "not well"})
	return out.String()
}

func TestPlainScreen(t *testing.T) {
	want := `A story in one part.

1. It begins
  shop-a         says a sentence that is too long for one line of the
                 screen, even of a wide one
                 - one of the things that it names, which takes more
                   than one line of the screen
  ok             well
  WRONG          not well
`
	if got := show(t, false, false, 72); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := show(t, true, false, 72); got != want {
		t.Errorf("a terminal without colour, got:\n%s\nwant:\n%s", got, want)
	}
}

func TestNarrowScreen(t *testing.T) {
	want := `A story in one part.

1. It begins
  shop-a
    says a sentence that is too
    long for one line of the
    screen, even of a wide one
    - one of the things that it
      names, which takes more
      than one line of the
      screen
  ok
    well
  WRONG
    not well
`
	if got := show(t, false, false, 32); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Colour changes nothing but the colour, and ends on the line where it begins.
func TestColour(t *testing.T) {
	coloured := show(t, true, true, 72)
	for line := range strings.Lines(coloured) {
		if strings.Count(line, "\x1b[0m")*2 != strings.Count(line, "\x1b[") || !strings.HasSuffix(line, "\n") {
			t.Errorf("colour does not end with its line: %q", line)
		}
	}
	if !strings.Contains(coloured, "\x1b[36mshop-a\x1b[0m") || !strings.Contains(coloured, "\x1b[31mnot well\x1b[0m") {
		t.Errorf("the shop is not cyan, or what is wrong is not red:\n%q", coloured)
	}
	if got, want := withoutColour(coloured), show(t, false, false, 72); got != want {
		t.Errorf("without its colour:\n%s\nwant:\n%s", got, want)
	}
}

func withoutColour(s string) string {
	for _, c := range []colour{"0", bold, dim, red, green, yellow, magenta, cyan} {
		s = strings.ReplaceAll(s, "\x1b["+string(c)+"m", "")
	}
	return s
}

func TestNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := newScreen(f, func(string) string { return "" })
	if s.lively || s.colour || s.width() != plainWidth {
		t.Errorf("a file is taken for a terminal: %+v", s)
	}
	stop := s.watch(func() string { return "a number" })
	stop()
	stop()
	if text, err := os.ReadFile(f.Name()); err != nil || len(text) != 0 {
		t.Errorf("%q in the file, %v", text, err)
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		line  string
		width int
		want  string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"[\x1b[32m##\x1b[0m--]", 3, "[\x1b[32m##\x1b[0m"},
		{"第一道拦截", 2, "第一"},
	} {
		if got := clip(tt.line, tt.width); got != tt.want {
			t.Errorf("clip(%q, %d) = %q, want %q", tt.line, tt.width, got, tt.want)
		}
	}
}

func TestFold(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one\n", []string{"one"}},
		{"one two three", []string{"one two", "three"}},
		{"incomprehensible word", []string{"incomprehensible", "word"}},
	} {
		if got := fold(tt.text, 8); !slices.Equal(got, tt.want) {
			t.Errorf("fold(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %q, want %q", n, got, want)
		}
	}
}
