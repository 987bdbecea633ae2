// Package wait has what code needs that waits: a sleep that ends with a context or is
// woken, the end of a context by the clock, and delays between attempts that fail.
//
//	pause := wait.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
//	for {
//		if err := try(ctx); err == nil || wait.Sleep(ctx, pause.Next(), nil) != nil {
//			return err
//		}
//	}
package wait

import (
	"context"
	"time"
)

// Sleep waits for d, or until wake is sent to or closed; a nil wake never is. It
// returns ctx's error if ctx has ended by then.
func Sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Wake wakes who receives from ch, which holds one element: now, or when it looks next.
// It does not block.
func Wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Err returns ctx.Err(), or context.DeadlineExceeded if ctx's deadline has passed
// and ctx has not noticed yet: a socket with the same deadline may be first.
func Err(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}
