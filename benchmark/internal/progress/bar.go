// Package progress shows how far a long work is: a bar on a terminal, a line
// every few seconds elsewhere.
package progress

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	width     = 30
	perLine   = 5 * time.Second        // elsewhere
	perRedraw = 100 * time.Millisecond // on a terminal
)

// A Bar is safe for concurrent use.
type Bar struct {
	out      io.Writer
	name     string
	terminal bool
	now      func() time.Time

	mu          sync.Mutex
	start, last time.Time
	first       int64 // where it began
	done, total int64
}

// New returns a bar of work of which done of total is behind us.
func New(out io.Writer, name string, done, total int64) *Bar {
	b := &Bar{out: out, name: name, terminal: isTerminal(out), now: time.Now, first: done, done: done, total: total}
	b.start = b.now()
	return b
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Add counts n more as done.
func (b *Bar) Add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	every := perLine
	if b.terminal {
		every = perRedraw
	}
	if now := b.now(); now.Sub(b.last) >= every {
		b.last = now
		b.draw(now)
	}
}

// Close draws the bar for the last time.
func (b *Bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draw(b.now())
	if b.terminal {
		fmt.Fprintln(b.out)
	}
}

func (b *Bar) draw(now time.Time) {
	if b.terminal {
		fmt.Fprintf(b.out, "\r%s\x1b[K", b.line(now))
		return
	}
	fmt.Fprintln(b.out, b.line(now))
}

func (b *Bar) line(now time.Time) string {
	part := 1.0
	if b.total > 0 {
		part = min(1, float64(b.done)/float64(b.total))
	}
	filled := int(part * width)
	spent := now.Sub(b.start)
	rate := 0.0
	if spent > 0 {
		rate = float64(b.done-b.first) / spent.Seconds()
	}
	line := fmt.Sprintf("%s [%s%s] %3.0f %% %d/%d, %s/s", b.name,
		strings.Repeat("=", filled), strings.Repeat(" ", width-filled), part*100, b.done, b.total, rounded(rate))
	switch {
	case b.done >= b.total:
		return line + ", took " + spent.Round(100*time.Millisecond).String()
	case rate > 0:
		left := time.Duration(float64(b.total-b.done) / rate * float64(time.Second))
		return line + ", " + left.Round(time.Second).String() + " left"
	}
	return line
}

// rounded keeps a decimal of what is small.
func rounded(rate float64) string {
	if rate < 10 {
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return strconv.FormatFloat(rate, 'f', 0, 64)
}
