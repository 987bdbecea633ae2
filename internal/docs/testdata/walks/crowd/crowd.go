// Package crowd lets many callers do the same at once.
package crowd

import (
	"errors"
	"fmt"
	"log"

	"github.com/belaygo/belay/guard"
)

// Repeat calls f for fifty callers at once, and prints how many were the first and how many
// repeated. A caller whose wait for the lock has ended calls again. Another error ends the program.
func Repeat(f func(caller int) error) {
	const callers = 50
	errs := make(chan error, callers)
	for caller := range callers {
		go func() {
			err := f(caller)
			for errors.Is(err, guard.ErrBusy) {
				err = f(caller)
			}
			errs <- err
		}()
	}
	done, repeats := 0, 0
	for range callers {
		switch err := <-errs; {
		case err == nil:
			done++
		case errors.Is(err, guard.ErrDuplicate):
			repeats++
		default:
			log.Fatal(err)
		}
	}
	fmt.Printf("%d done, %d repeated\n", done, repeats)
}
