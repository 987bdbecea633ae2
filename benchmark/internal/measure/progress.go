package measure

import (
	"fmt"
	"io"
	"time"
)

// progressInterval is the time between two lines of progress.
const progressInterval = 5 * time.Second

// Progress returns a function that counts n more of total as done. It writes how much
// is done, first, last and every 5 seconds, and is not safe for concurrent use.
func Progress(out io.Writer, name string, done, total int64) func(n int64) {
	from, first, written := time.Now(), done, time.Time{}
	return func(n int64) {
		done += n
		if done < total && time.Since(written) < progressInterval {
			return
		}
		written = time.Now()
		took := written.Sub(from)
		left := time.Duration(float64(took) / float64(done-first) * float64(total-done))
		fmt.Fprintf(out, "%s %d/%d after %v, %v left\n", name, done, total, took.Round(time.Second), left.Round(time.Second))
	}
}
