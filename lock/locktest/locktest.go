// Package locktest checks that a lock.Engine keeps its contract, by itself and
// in the hands of a lock.Locker.
//
//	func TestEngine(t *testing.T) {
//		locktest.Test(t, func(t *testing.T) locktest.Setup {
//			store := startStore(t)
//			return locktest.Setup{
//				Engine: connect(t, store), Other: connect(t, store),
//				Promises: locktest.Promises{Tokens: true},
//			}
//		})
//	}
//
// Some of the checks wait for locks to expire, side by side: they take about ten
// seconds in all. The last one counts goroutines, so let no other test run at
// the same time.
package locktest

import (
	"testing"
	"time"

	"github.com/belaygo/belay/lock"
)

// A Setup is what one check works with. It uses keys that begin with
// "locktest:" and leaves none of them locked, unless it fails.
type Setup struct {
	// Engine is the engine under test.
	Engine lock.Engine
	// Other is another engine on the same store, as another process has it.
	Other lock.Engine
	// Advance lets time pass in a store whose clock does not run by itself.
	// Such a store is this Setup's own. Nil: it runs.
	Advance func(d time.Duration)

	Promises
}

// Promises are what engines may differ in. What an engine does not promise is
// not checked; everything else is.
type Promises struct {
	// Wakes: the engine is a lock.Waker, and wakes for the releases of all
	// processes.
	Wakes bool
	// Marks: the engine keeps markers, and loses none.
	Marks bool
	// Tokens: they grow from grant to grant of a key, by 1024 or more, so that
	// there is room for hand-overs, whichever process asks.
	Tokens bool
	// Nodes: grants and holders name their node.
	Nodes bool
	// Slots: they name their hash slot, too.
	Slots bool
	// Probes: the engine is a lock.Pinger.
	Probes bool
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
	promised func(Promises) bool // nil = by all
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
	{"RefusalDoesNotProlong", nil, refusalDoesNotProlong},
	{"EndedContext", nil, endedContext},
	{"KeysAreTakenAsTheyAre", nil, keysAreTakenAsTheyAre},
	{"EngineTokensGrow", tokens, engineTokensGrow},
	{"PlacesAreNamed", nodes, placesAreNamed},
	{"ProbeTakesNothing", probes, probeTakesNothing},
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

func wakes(p Promises) bool  { return p.Wakes }
func marks(p Promises) bool  { return p.Marks }
func tokens(p Promises) bool { return p.Tokens }
func nodes(p Promises) bool  { return p.Nodes }
func probes(p Promises) bool { return p.Probes }
