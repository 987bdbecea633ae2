package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	width     = 78 // columns
	nameWidth = 15 // columns of the name of an actor
)

// screen prints the story in lines of at most width columns.
type screen struct {
	out   io.Writer
	steps int
}

// text prints a text outside of the steps.
func (s *screen) text(text string) { s.fold("", text) }

// step begins a part of the story.
func (s *screen) step(title string) {
	s.steps++
	fmt.Fprintf(s.out, "\n%d. %s\n", s.steps, title)
}

// say prints what an actor does.
func (s *screen) say(who, text string) { s.fold(fmt.Sprintf("  %-*s", nameWidth, who), text) }

// item prints one of several things that the last actor says.
func (s *screen) item(text string) { s.fold(fmt.Sprintf("  %-*s- ", nameWidth, ""), text) }

// fold writes a text behind margin, and breaks it between words into lines that are
// no longer than width unless a word is.
func (s *screen) fold(margin, text string) {
	line := margin
	for n, word := range strings.Fields(text) {
		switch {
		case n == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			fmt.Fprintln(s.out, line)
			line = strings.Repeat(" ", len(margin)) + word
		default:
			line += " " + word
		}
	}
	fmt.Fprintln(s.out, line)
}
