// Package parallel calls functions at once.
package parallel

import (
	"runtime"
	"sync"
)

// Do calls f with 0 to n-1, all at once, and waits for all. If one panics, or ends its
// goroutine, Do does so after the others have ended.
func Do(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	left := make([]func(), n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			left[i] = runtime.Goexit
			defer func() {
				if p := recover(); p != nil {
					left[i] = func() { panic(p) }
				}
			}()
			f(i)
			left[i] = nil
		})
	}
	all.Wait()
	for _, leave := range left {
		if leave != nil {
			leave()
		}
	}
}
