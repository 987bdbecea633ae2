package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testrepo"
	"github.com/belaygo/belay/notify"
)

// A blindSpot is a part of docs/guarantees.md: why nobody reports that a lock was lost.
type blindSpot string

const (
	nothing       blindSpot = ""
	killedRefused blindSpot = "A process that is killed between the refusal of its write, or its rollback, and the commit of the event"
	killedWaiting blindSpot = "or with a lock that it lost earlier, when callers before had it who handed it on in memory: the last one finds that out."
	killedLate    blindSpot = "A commit by a holder that had lost its lock and died before it could report, unless it came after the next holder's snapshot."
	deadNode      blindSpot = "A lock that was lost after its holder's commit, or before an operation that failed for another reason (its connection to the database broke, say) and was rolled back, when the release met a dead node"
	deadAtUnknown blindSpot = "or before a commit of unknown outcome, when the question who has it did."
	deadAtRepeat  blindSpot = "A repeat whose holder had lost its lock, when neither the question who has it nor the release reached the lock's node."
	deadAtOneOf   blindSpot = "The same holds if that caller has lost the lock, and neither the question who has it nor the release is answered."
	oneOfLost     blindSpot = "An operation with several keys that loses several locks reports one of them."
	notTaken      blindSpot = "A failure whose event neither the database nor the broker takes"
	behindNode    blindSpot = "On a node of a cluster that may be behind the others" // where nothing else hides the loss, it is told all the same
)

// TestBlindSpotsAreNamed checks that each excuse is one that docs/guarantees.md names.
func TestBlindSpotsAreNamed(t *testing.T) {
	for _, spot := range []blindSpot{
		killedRefused, killedWaiting, killedLate, deadNode, deadAtUnknown, deadAtRepeat, deadAtOneOf, oneOfLost, notTaken, behindNode,
	} {
		if !testrepo.Says(t, "docs/guarantees.md", string(spot)) {
			t.Errorf("docs/guarantees.md does not name the blind spot %q", spot)
		}
	}
}

// TestUntoldBeforeItBegan: the last one who was handed a lock finds for all that it was lost,
// also if its own transaction never began; and nobody is told if nobody takes the event.
func TestUntoldBeforeItBegan(t *testing.T) {
	records := recordsOf(map[string][]line{
		"a": append(story("a.0", "A", 10, 12, 20, 0, ""),
			line{T: 21, At: called, Do: "a.1", Key: "k"}, line{T: 21, At: returned, Do: "a.0", Key: "k", Result: done},
			line{T: 22, At: release, Do: "a.1", Key: "k", Owner: "A"}, line{T: 23, At: released, Do: "a.1", Key: "k", Owner: "A", Result: "gone"},
			line{T: 24, At: event, Do: "a.1", Key: "k", Event: &notify.Event{ID: "1", Owner: "A", Verdict: notify.VerdictLost}},
			line{T: 25, At: stored, Do: "a.1", ID: "1", Result: "nobody takes it"}, line{T: 26, At: returned, Do: "a.1", Key: "k", Result: failed}),
		"b": story("b.0", "B", 13, 14, 15, 16, "freed"),
	})
	for _, r := range records {
		for _, e := range r.handed {
			e.missing = true
		}
	}
	h := read(records, nil)
	overlaps := h.overlaps()
	if len(overlaps) != 1 || overlaps[0].reported() || h.blindSpot(overlaps[0]) != notTaken {
		t.Errorf("overlaps are %v, want one in the blind spot %q", overlaps, notTaken)
	}
}

// blindSpot says why nobody could report that the early lock was lost.
func (h *history) blindSpot(o overlap) blindSpot {
	spot := h.unseen(o.early)
	if spot == nothing && o.unordered() {
		spot = h.unseen(o.late)
	}
	return spot
}

// unseen says why those who had the grant of c, from c on, could not report that it was
// lost. The last of them finds that out for all.
func (h *history) unseen(c *call) blindSpot {
	g := c.grant
	calls := g.from(c)
	last := calls[len(calls)-1]
	switch {
	case g.waiting && g.release == 0:
		return killedWaiting
	case slices.ContainsFunc(calls, func(c *call) bool { return c.unpublished }):
		return notTaken
	case slices.ContainsFunc(last.legs, func(leg *call) bool { return leg.reportsFor(g) }):
		return oneOfLost
	case last.returned == 0 && last.died > 0 && last.committing > 0:
		return killedLate
	case last.returned == 0 && last.died > 0:
		return killedRefused
	case !h.nodeDied(g.node, last):
		return nothing
	case last.result == unknown && !last.inspected:
		return deadAtUnknown
	case g.released != unanswered:
		return nothing
	case last.result == done, last.result == poor, last.result == apart, last.result == busy, strings.HasPrefix(last.result, failed):
		return deadNode
	case last.result == unavailable: // of another try, after a COMMIT that was found to be rolled back
		return deadNode
	case last.inspected:
		return nothing
	case last.result == duplicate, last.result == stale:
		return deadAtRepeat
	case last.result == conflict:
		return deadAtOneOf
	}
	return nothing
}

// reportsFor reports whether an event about the lock of c may stand for the loss of g, another lock of the
// call. A lock that was handed to the call, and was found gone, comes before one of its own.
func (c *call) reportsFor(g *grant) bool {
	alarms := c.alarms()
	if len(alarms) == 0 {
		return false
	}
	handed := g.by != "" && g.by != c.name && g.released == "gone"
	return !handed || c.grant == nil || c.grant.by != c.name || alarms[0].Verdict == notify.VerdictOverlap
}

// from returns c and the calls that had the grant after it, up to the one that released it. The operation
// of that one may not have begun.
func (g *grant) from(c *call) []*call {
	calls := slices.Clone(g.calls[slices.Index(g.calls, c):])
	if i := slices.Index(calls, g.freedBy); i >= 0 {
		return calls[:i+1]
	}
	if g.freedBy != nil && !slices.Contains(g.calls, g.freedBy) {
		calls = append(calls, g.freedBy)
	}
	return calls
}

// away is how long the locks of a node are out of reach at most, once it was killed: until
// its replica is the master and clients know that.
const away = 15 * time.Second

// nodeDied reports whether the node with a lock of c was killed, in the last moments of c
// or not long before.
func (h *history) nodeDied(node string, c *call) bool {
	return slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.Kind == failover && f.Subject == node && f.From <= c.returned && c.returned <= f.To+int64(away)
	})
}
