// Package inside shows a Guard to tests in other packages: they wait for what it does, and set
// times that no program sets.
//
//	inside.Of(g).TurnLimit(time.Millisecond)
//
// Only tests call Of. Package guard registers how a Guard is shown when a program starts.
package inside

import (
	"context"
	"time"

	"github.com/belaygo/belay/lock"
)

// A View shows one Guard.
type View interface {
	// Acquire acquires the lock on key from the Locker of the Guard.
	Acquire(ctx context.Context, key string) (*lock.Lease, error)
	// StepClock moves the wall clock of the Guard against the monotonic one, as while the host is suspended.
	StepClock(d time.Duration)
	// LookForUndecided makes one look of Config.Calls.
	LookForUndecided() error

	// Lines returns for how many keys callers wait to share a transaction.
	Lines() int
	// Queued returns how many callers wait to share a transaction under key, apart from the
	// one that leads.
	Queued(key string) int
	// TurnLimit sets how long the changes of a crew may take.
	TurnLimit(d time.Duration)
	// NoTurnLimit lets the changes of a crew take as long as they do.
	NoTurnLimit()

	// PassAfter sets for how long an operation waits at most for the pool before its locks.
	PassAfter(d time.Duration)
	// KeepPlaces sets for how long an operation counts that has waited so, and waits for its locks.
	KeepPlaces(d time.Duration)
	// AtGate returns how many operations wait so.
	AtGate() int
	// Begins returns how many transactions wait for a connection, or for the answer to BEGIN.
	Begins() int

	// FailOver makes the Guard take what it has committed for another server's.
	FailOver()
	// Found returns how many claims the Guard has found since FailOver.
	Found() int
	// Age makes the Guard take what it has committed for older by d.
	Age(d time.Duration)
	// LookAgainAfter sets the time between two looks for lost commits.
	LookAgainAfter(d time.Duration)
	// Looks returns whether the Guard looks for lost commits now, and when it last began to.
	Looks() (now bool, last time.Time)
	// Kept returns how many claims the Guard looks for after a failover.
	Kept() int
}

var of func(guard any) View

// Register sets how a *guard.Guard is shown.
func Register(f func(guard any) View) { of = f }

// Of returns the View of a *guard.Guard.
func Of(guard any) View { return of(guard) }
