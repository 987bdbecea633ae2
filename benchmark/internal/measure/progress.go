package measure

import (
	"fmt"
	"io"
	"time"
)

// progressInterval is the time between two lines of a Progress.
const progressInterval = 5 * time.Second

// A Progress writes how much of some work is done, as a line each 5 seconds. It is
// not safe for concurrent use.
type Progress struct {
	out         io.Writer
	name        string
	done, total int64
	from, said  time.Time
	first       int64
}

// NewProgress returns the Progress of work of which done of total is behind it.
func NewProgress(out io.Writer, name string, done, total int64) *Progress {
	return &Progress{out: out, name: name, done: done, total: total, from: time.Now(), first: done}
}

// Add counts n more as done, and says so first, last, and each 5 seconds.
func (p *Progress) Add(n int64) {
	p.done += n
	now := time.Now()
	if p.done < p.total && now.Sub(p.said) < progressInterval {
		return
	}
	p.said = now
	took := now.Sub(p.from)
	left := time.Duration(float64(took) / float64(p.done-p.first) * float64(p.total-p.done))
	fmt.Fprintf(p.out, "%s %d/%d after %v, %v left\n", p.name, p.done, p.total, took.Round(time.Second), left.Round(time.Second))
}
