// Package background runs what a goroutine of the library does without a caller. A panic there,
// of a driver, a client's hook or a logger, would end the process, though the caller of the
// library has returned long ago. Here it is one more error.
//
//	for wait.Sleep(ctx, pause, nil) == nil {
//		err := background.Do(logger, "purge", func() error { return purge(ctx) })
//	}
package background

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// ErrPanic is returned for a function that panicked.
var ErrPanic = errors.New("panic")

// Do calls f and returns its error. If f panics, Do logs that at the level Error with the stack,
// and returns an error that matches ErrPanic. what is what f does. A nil logger is slog.Default().
// A goroutine that f ends by runtime.Goexit ends.
func Do(logger *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v", what, ErrPanic, p)
			report(logger, what, p)
		}
	}()
	return f()
}

// report logs a panic.
func report(logger *slog.Logger, what string, p any) {
	Logger(logger).Error("panic in the background", "doing", what, "panic", p, "stack", string(debug.Stack()))
}
