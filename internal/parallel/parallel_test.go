package parallel_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belaygo/belay/internal/parallel"
)

func TestDo(t *testing.T) {
	for n := range 4 {
		var sum atomic.Int64
		parallel.Do(n, func(i int) { sum.Add(int64(i) + 1) })
		if want := int64(n * (n + 1) / 2); sum.Load() != want {
			t.Errorf("%d calls: sum is %d, want %d", n, sum.Load(), want)
		}
	}
}

// TestDoDoesNotReturn: what one call does to its goroutine, Do does to its caller's.
func TestDoDoesNotReturn(t *testing.T) {
	for how, leave := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for n := 1; n < 4; n++ {
			var ended atomic.Int64
			var got any
			returned := false
			var caller sync.WaitGroup
			caller.Go(func() {
				defer func() { got = recover() }()
				parallel.Do(n, func(i int) {
					defer ended.Add(1)
					if i == n-1 {
						leave()
					}
				})
				returned = true
			})
			caller.Wait()
			if returned || ended.Load() != int64(n) || how == "panic" && got != "boom" {
				t.Errorf("%s of one in %d: returned is %v, %d ended, recovered %v", how, n, returned, ended.Load(), got)
			}
		}
	}
}
