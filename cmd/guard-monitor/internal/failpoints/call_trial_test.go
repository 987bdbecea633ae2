//go:build failpoints

package failpoints_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// callTimeout is how long a call may last. The lease of a row is that, and four times endTimeout.
const callTimeout = time.Second

// role is what becomes of payments in all processes of the situation.
func (t *callTable) role() callRole {
	if t == nil {
		return callRole{}
	}
	r := callRole{Timeout: callTimeout, Until: time.Hour, Refuses: t.refuses}
	if t.undecided {
		r.Until = callTimeout
	}
	return r
}

// again is how a request ends that has ended before, and anew one that has not.
func (c *trial) again() string {
	if c.call != nil && c.call.undecided {
		return "undecided"
	}
	return "repeat"
}

func (c *trial) anew() string {
	if c.call != nil && c.call.undecided {
		return "undecided"
	}
	return "done"
}

// pending checks what the dead has left in belay_pending, and what the provider has seen.
func (c *trial) pending() {
	c.Helper()
	if c.call == nil {
		return
	}
	left := c.from(c.call.reserves, c.point) && !c.from(c.effect, c.point)
	stored := left && c.from(c.call.stores, c.point)
	testwait.Until(c, fmt.Sprintf("pending is %v, with an answer: %v", left, stored), func() bool { // a COMMIT may be under way
		list := c.listed()
		return (len(list) == 1) == left && (!left || list[0].Answered == stored)
	})
	if n := len(c.charges()); n != c.seen() {
		c.Errorf("the provider was called %d times before the death, want %d", n, c.seen())
	}
}

func (c *trial) listed() []once.Pending {
	c.Helper()
	list, err := once.Open(c.Context(), c.db, 9)
	testdb.WantNil(c, err)
	return list
}

// charges returns the ids of all calls to the provider.
func (c *trial) charges() (ids []string) {
	c.Helper()
	testdb.WantNil(c, c.db.Model(&Charge{}).Pluck("call_id", &ids).Error)
	return ids
}

// seen returns how often the provider was called until the death.
func (c *trial) seen() int {
	if c.from(c.call.charges, c.point) {
		return c.call.others + 1
	}
	return c.call.others
}

// charged checks the calls to the provider: all with one id, one more than before the death unless
// the answer was known, or nobody may call any more. What is undecided is listed, and nothing else.
func (c *trial) charged() {
	c.Helper()
	if c.call == nil {
		return
	}
	want := c.seen()
	if !c.call.undecided && !c.from(c.effect, c.point) && !c.from(c.call.stores, c.point) {
		want++
	}
	ids := c.charges()
	if n := len(ids); n != want {
		c.Errorf("the provider was called %d times, want %d", n, want)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) > 1 {
		c.Errorf("the provider was called with several ids: %s", strings.Join(ids, ", "))
	}
	list := c.listed()
	if c.call.undecided != (len(list) == 1 && list[0].Undecided && list[0].Key == paid(c.key).Key()) || !c.call.undecided && len(list) > 0 {
		c.Errorf("pending is %+v", list)
	}
}

// notAnswered lets the provider charge and not answer.
func (c *trial) notAnswered() {
	r := c.role()
	r.Call.Mute = true
	c.victim(r)
}

// notSettled lets Settle fail in the victim.
func (c *trial) notSettled() {
	r := c.role()
	r.Call.Unsettled = true
	c.victim(r)
}

// takenOver lets the victim go on for one that has died in its call.
func (c *trial) takenOver() {
	first := c.start("first victim", "guard/called", c.role())
	c.awaitDeath(first)
	c.victim(c.role())
}

// inCall starts a victim that stands in its call.
func (c *trial) inCall() {
	r := c.role()
	r.Call.Hold = true
	r.TTL = longTTL
	c.victim(r)
	c.dead.await("stands", 1)
}

// lostInCall lets the victim lose the lock of its request in its call.
func (c *trial) lostInCall() {
	c.inCall()
	c.loseRequest()
	c.dead.Proceed()
}

func (c *trial) loseRequest() {
	c.Helper()
	if n, err := c.redis.Del(c.Context(), paid(c.key).Key()).Result(); err != nil || n != 1 {
		c.Fatalf("the victim's lock is not in Redis: %v", err)
	}
}

// overtakenInCall lets the victim's call last longer than its lease, without a lock. Another process
// settles the request meanwhile.
func (c *trial) overtakenInCall() {
	c.inCall()
	c.loseRequest()
	c.rival()
	c.dead.Proceed()
}

// cutReservation starts a victim whose COMMIT 1 meets a fault.
func (c *trial) cutReservation(set func(*testdb.Link)) {
	k := c.linked(true, func(*testdb.Link) {})
	c.dead.await("stands", 1)
	set(k)
	c.dead.Proceed()
}

func (c *trial) commitOfReservation() {
	c.cutReservation(func(k *testdb.Link) { k.Before.Store(true) })
}

func (c *trial) answerToReservation() {
	c.cutReservation(func(k *testdb.Link) { k.After.Store(true) })
}

// cutSettlement starts a victim whose COMMIT 2 meets a fault.
func (c *trial) cutSettlement(set func(*testdb.Link)) {
	k := testdb.NewLink(c, testdb.AddrOf(c, c.dsn))
	r := c.role()
	r.DSN, r.Call.Hold = k.Through(c, c.dsn), true
	c.victim(r)
	c.dead.await("stands", 1)
	set(k)
	c.dead.Proceed()
}

func (c *trial) commitOfSettlement() {
	c.cutSettlement(func(k *testdb.Link) { k.Before.Store(true) })
}

func (c *trial) answerToSettlement() {
	c.cutSettlement(func(k *testdb.Link) { k.After.Store(true) })
}
