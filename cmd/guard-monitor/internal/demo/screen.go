package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen tells the story. To people at a terminal it tells it in colour, slowly
// enough to be read, and with numbers that move. Everywhere else the same lines
// come plainly and at once.
//
// Each write leaves the terminal as it found it: there is nothing to restore when
// the program is interrupted.
type screen struct {
	out    io.Writer
	lively bool // somebody watches: take your time, and draw lines again
	colour bool
	width  func() int // columns
	steps  int
}

const (
	plainWidth = 78
	minWidth   = 24
	maxWidth   = 100
)

// newScreen returns the screen for a file, as what it is and the usual variables
// say: NO_COLOR, and TERM=dumb.
func newScreen(f *os.File, getenv func(string) string) *screen {
	fd := int(f.Fd())
	s := &screen{out: f, width: func() int { return plainWidth }}
	if !term.IsTerminal(fd) || getenv("TERM") == "dumb" {
		return s
	}
	s.lively, s.colour = true, getenv("NO_COLOR") == ""
	s.width = func() int {
		columns, _, err := term.GetSize(fd)
		if err != nil || columns == 0 {
			return plainWidth
		}
		return min(max(columns, minWidth), maxWidth)
	}
	return s
}

// colour of a text, as the parameter of the terminal's command for it.
type colour string

const (
	plain   colour = ""
	bold    colour = "1"
	dim     colour = "2"
	red     colour = "31"
	green   colour = "32"
	yellow  colour = "33"
	magenta colour = "35"
	cyan    colour = "36"
)

func (s *screen) paint(c colour, text string) string {
	if !s.colour || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// How long people get to read.
const (
	afterLine  = 250 * time.Millisecond
	beforeStep = 500 * time.Millisecond
	frame      = 80 * time.Millisecond
)

func (s *screen) pause(ctx context.Context, d time.Duration) {
	if !s.lively {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// text tells something outside of the steps.
func (s *screen) text(c colour, text string) {
	for _, line := range fold(text, s.width()) {
		fmt.Fprintln(s.out, s.paint(c, line))
	}
}

// step begins a part of the story.
func (s *screen) step(ctx context.Context, title string) {
	s.pause(ctx, beforeStep)
	s.steps++
	fmt.Fprintln(s.out)
	s.text(bold, fmt.Sprintf("%d. %s", s.steps, title))
}

// say tells what somebody does.
func (s *screen) say(ctx context.Context, who, text string) { s.tell(ctx, plain, who, "", text) }

// alarm tells what should not happen.
func (s *screen) alarm(ctx context.Context, who, text string) { s.tell(ctx, red, who, "", text) }

// item tells one of several things that somebody says.
func (s *screen) item(ctx context.Context, text string) { s.tell(ctx, plain, "", "- ", text) }

const (
	nameWidth = 15 // columns of who says something, where there is room for it
	roomy     = 60 // columns that make room
)

func (s *screen) tell(ctx context.Context, c colour, who, bullet, text string) {
	defer s.pause(ctx, afterLine)
	margin := 2 + nameWidth
	name := s.paint(whose(who), who) + strings.Repeat(" ", max(nameWidth-len(who), 1))
	if s.width() < roomy {
		if who != "" {
			fmt.Fprintln(s.out, "  "+s.paint(whose(who), who))
		}
		margin, name = 4, "  "
	}
	for _, line := range fold(text, s.width()-margin-len(bullet)) {
		fmt.Fprintln(s.out, "  "+name+bullet+s.paint(c, line))
		name, bullet = strings.Repeat(" ", margin-2), strings.Repeat(" ", len(bullet))
	}
}

// whose is the colour of somebody's name.
func whose(who string) colour {
	switch {
	case strings.HasPrefix(who, "shop-"):
		return cyan
	case strings.HasPrefix(strings.ToLower(who), "redis"):
		return yellow
	case who == "guard-monitor", who == "alert":
		return magenta
	case who == "ok":
		return green
	case who == "WRONG":
		return red
	}
	return bold
}

// check says whether something is as it should be.
func (s *screen) check(ctx context.Context, c check) {
	if c.ok {
		s.tell(ctx, plain, "ok", "", c.want)
	} else {
		s.tell(ctx, red, "WRONG", "", c.got)
	}
}

// watch shows a line that changes until stop is called. Meanwhile nobody else
// uses the screen. Where nobody watches it shows nothing.
func (s *screen) watch(line func() string) (stop func()) {
	if !s.lively {
		return func() {}
	}
	done := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(frame)
		defer tick.Stop()
		for {
			fmt.Fprint(s.out, "\r"+clip("  "+line(), s.width()-1)+eraseRest)
			select {
			case <-tick.C:
			case <-done:
				fmt.Fprint(s.out, "\r"+eraseRest)
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		drawing.Wait()
	})
}

const eraseRest = "\x1b[K"

// bar draws how much of something is done.
func (s *screen) bar(done, all int) string {
	const size = 25
	full := size * min(done, all) / max(all, 1)
	return "[" + s.paint(green, strings.Repeat("#", full)) + strings.Repeat("-", size-full) + "]"
}

// clip cuts a line that is longer than width. Commands for colour take no room.
func clip(line string, width int) string {
	var b strings.Builder
	command, column := false, 0
	for _, r := range line {
		switch {
		case r == '\x1b':
			command = true
		case command:
			command = r != 'm'
		case column == width:
			continue
		default:
			column++
		}
		b.WriteRune(r)
	}
	return b.String()
}

// fold breaks a text between words into lines that are no longer than width
// unless a word is.
func fold(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
