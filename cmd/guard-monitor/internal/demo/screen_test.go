package main

import (
	"strings"
	"testing"
)

func TestScreen(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out}
	s.text("A story in one part.")
	s.step("It begins")
	s.say("shop-a", "says a sentence that is too long for one line of the screen, even of a very wide one")
	s.item("one of the things that it names, which takes more than one line of the screen")
	s.say("", "第一道拦截\n and a word that is incomprehensible"+strings.Repeat("-", width))
	want := `A story in one part.

1. It begins
  shop-a         says a sentence that is too long for one line of the screen,
                 even of a very wide one
                 - one of the things that it names, which takes more than one
                   line of the screen
                 第一道拦截 and a word that is
                 incomprehensible` + strings.Repeat("-", width) + "\n"
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
