// Package locktest checks that a lockengine.Engine keeps its contract, by itself and
// in the hands of a lock.Locker.
//
//	func TestEngine(t *testing.T) {
//		locktest.Test(t, func(t *testing.T) locktest.Setup {
//			store := startStore(t)
//			return locktest.Setup{
//				Engine: connect(t, store), Other: connect(t, store),
//				Tokens: true,
//			}
//		})
//	}
//
// Some of the checks wait for locks to expire, or for a store that does not answer, side
// by side: they take some ten seconds in all. The last one counts goroutines, so let no other test run at
// the same time.
package locktest

import (
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// A Setup is what one check works with, and what the engine promises. A check uses
// keys that begin with "locktest:" and leaves none of them locked, unless it fails.
type Setup struct {
	// Engine is the engine under test.
	Engine lockengine.Engine
	// Other is another engine on the same store, as another process has it.
	Other lockengine.Engine
	// Advance lets time pass in a store whose clock does not run by itself. Each
	// Setup has such a store of its own. Nil = the clock runs.
	Advance func(d time.Duration)
	// Fault cuts Engine off from its store, and not Other, until heal is called. A Link
	// does it for a store behind TCP. Each Setup has a way of its own. Nil = it can't be
	// cut off, as a store in memory, and the checks of that are skipped.
	Fault func(f Fault) (heal func())

	// The rest is what the engine promises beyond the contract. What is false is not
	// checked.

	Wakes  bool // it is a lockengine.Waker, and wakes for the releases of all processes
	Marks  bool // it keeps markers, and loses none
	Tokens bool // they grow by 1024 or more from grant to grant of a key, in all processes
	Nodes  bool // grants and holders name their node
	Slots  bool // they name their hash slot, too
	Probes bool // it is a lockengine.Pinger
	Bound  bool // locks belong to the engine that took them: no other renews them or acquires them again
}

// Test runs each check as a subtest, on a Setup of its own. What newSetup
// starts, it stops in a Cleanup of the t that it is given.
func Test(t *testing.T, newSetup func(t *testing.T) Setup) {
	t.Helper()
	t.Run("Checks", func(t *testing.T) {
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newCheck(t, newSetup, c.promised))
			})
		}
	})
	t.Run("NoGoroutineIsLeft", func(t *testing.T) { noGoroutineIsLeft(t, newSetup) })
}

var checks = []struct {
	name     string
	promised func(Setup) bool // nil = by all
	run      func(*check)
}{
	// engine.go
	{"OwnersExcludeEachOther", nil, ownersExcludeEachOther},
	{"OneOfManyGetsIt", nil, oneOfManyGetsIt},
	{"AskingTwiceIsOneHold", nil, askingTwiceIsOneHold},
	{"OnlyTheOwnerReleases", nil, onlyTheOwnerReleases},
	{"RenewalsGetTheirVerdicts", nil, renewalsGetTheirVerdicts},
	{"HoldsExpire", nil, holdsExpire},
	{"RenewalProlongs", nil, renewalProlongs},
	{"RenewalsMayOverlap", nil, renewalsMayOverlap},
	{"RefusalDoesNotProlong", nil, refusalDoesNotProlong},
	{"EndedContext", nil, endedContext},
	{"NoTimeIsRefused", nil, noTimeIsRefused},
	{"KeysAreTakenAsTheyAre", nil, keysAreTakenAsTheyAre},
	{"OwnersAreTakenAsTheyAre", nil, ownersAreTakenAsTheyAre},
	{"EngineTokensGrow", tokens, engineTokensGrow},
	{"PlacesAreNamed", nodes, placesAreNamed},
	{"ProbeTakesNothing", probes, probeTakesNothing},
	// fault.go
	{"NotSentIsTrue", faulty, notSentIsTrue},
	{"AnswersInTime", faulty, answersInTime},
	// wake.go
	{"ReleaseWakes", wakes, releaseWakes},
	{"WatchIsStopped", wakes, watchIsStopped},
	{"NoWakeIsLost", wakes, noWakeIsLost},
	// marker.go
	{"MarkedKeyIsRefused", marks, markedKeyIsRefused},
	{"MarkExpires", marks, markExpires},
	{"MarkIsNoLock", marks, markIsNoLock},
	{"MarkWithoutLock", marks, markWithoutLock},
	{"MarkedWorkIsDoneOnce", marks, markedWorkIsDoneOnce},
	// locker.go
	{"LockersExclude", nil, lockersExclude},
	{"TryAcquireOfHeldLock", nil, tryAcquireOfHeldLock},
	{"ReleaseTwice", nil, releaseTwice},
	{"WaitEndsWithContext", nil, waitEndsWithContext},
	{"ReleaseEndsWait", nil, releaseEndsWait},
	{"WaitersDoNotStorm", nil, waitersDoNotStorm},
	{"DeadHolderIsFollowed", nil, deadHolderIsFollowed},
	{"NestedLeases", nil, nestedLeases},
	{"TokensGrowInOrderOfHolding", tokens, tokensGrowInOrderOfHolding},
	// loss.go
	{"LeaseOutlivesTTL", nil, leaseOutlivesTTL},
	{"LossIsTold", nil, lossIsTold},
	{"LossIsFoundAtRelease", nil, lossIsFoundAtRelease},
	{"LateReleaseHarmsNobody", nil, lateReleaseHarmsNobody},
	{"MaxHold", nil, maxHold},
	// closing.go
	{"CloseWhileHolding", nil, closeWhileHolding},
	{"CloseWhileWaiting", nil, closeWhileWaiting},
}

func wakes(s Setup) bool  { return s.Wakes }
func marks(s Setup) bool  { return s.Marks }
func tokens(s Setup) bool { return s.Tokens }
func nodes(s Setup) bool  { return s.Nodes }
func probes(s Setup) bool { return s.Probes }
func faulty(s Setup) bool { return s.Fault != nil }
