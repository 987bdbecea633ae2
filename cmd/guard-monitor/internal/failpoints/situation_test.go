//go:build failpoints

package failpoints_test

import "github.com/belaygo/belay/internal/testdb"

// plays has how a situation comes about, by its name. The victim is started last, or is
// told to proceed last.
var plays = map[string]func(*trial){
	"alone":                      (*trial).alone,
	"crew":                       (*trial).alone,
	"message":                    (*trial).alone,
	"renewed":                    (*trial).renewed,
	"handed over":                (*trial).handedOver,
	"repeat":                     (*trial).repeat,
	"remembered":                 (*trial).alone, // see trial.role
	"overlap":                    (*trial).overlap,
	"overlap without a broker":   (*trial).overlapWithoutBroker,
	"loss found by the watchdog": (*trial).lost,
	"late commit":                (*trial).late,
	"commit lost":                (*trial).commitLost,
	"answer lost":                (*trial).answerLost,
	"unknown commit":             (*trial).unknown,
	"late commit under a rival":  (*trial).lateUnderRival,
	"without the lock":           (*trial).withoutLock,

	"call, reserving":                  (*trial).alone,
	"call, settling":                   (*trial).alone,
	"call, refused":                    (*trial).alone,
	"call, undecided":                  (*trial).alone,
	"call, not answered":               (*trial).notAnswered,
	"call, not settled":                (*trial).notSettled,
	"call, refused and not settled":    (*trial).notSettled,
	"call, taken over":                 (*trial).takenOver,
	"call, lock lost":                  (*trial).lostInCall,
	"call, overtaken":                  (*trial).overtakenInCall,
	"call, commit of reservation lost": (*trial).commitOfReservation,
	"call, answer to reservation lost": (*trial).answerToReservation,
	"call, commit of settlement lost":  (*trial).commitOfSettlement,
	"call, answer to settlement lost":  (*trial).answerToSettlement,
}

func (c *trial) alone() { c.victim(c.role()) }

// renewed has the victim stand in its transaction until its lock is renewed.
func (c *trial) renewed() {
	r := c.role()
	r.Hold = true
	c.victim(r)
}

// handedOver has callers of the victim's process wait for each other.
func (c *trial) handedOver() {
	r := c.role()
	r.Callers, r.Runs = 4, 0
	c.victim(r)
}

func (c *trial) repeat() {
	c.rival()
	c.victim(c.role())
}

// standing starts a victim that stands in its transaction and renews nothing meanwhile.
func (c *trial) standing() {
	r := c.role()
	r.Hold, r.TTL = true, longTTL
	c.victim(r)
}

// overlap has the victim lose its lock in its transaction, and a rival do the same.
func (c *trial) overlap() {
	c.standing()
	c.loseLock()
	c.rival()
	c.dead.Proceed()
}

func (c *trial) overlapWithoutBroker() {
	r := c.role()
	r.Hold, r.TTL = true, longTTL
	r.AMQP = "amqp://127.0.0.1:1/"
	c.victim(r)
	c.loseLock()
	c.rival()
	c.dead.Proceed()
}

// lost is overlap, but the victim's watchdog finds the loss.
func (c *trial) lost() {
	r := c.role()
	r.Hold = true
	c.victim(r)
	c.loseLock()
	c.rival()
}

// late has the victim lose its lock and commit, with nobody in its way.
func (c *trial) late() {
	c.standing()
	c.loseLock()
	c.dead.Proceed()
}

// lateUnderRival is late, but another process has the lock by then and stands in its
// transaction: it is to report what the victim may not.
func (c *trial) lateUnderRival() {
	c.standing()
	c.loseLock()
	r := c.role()
	r.Hold, r.Carry, r.TTL = true, true, longTTL
	c.heir = c.start("heir", "", r)
	c.heir.await("stands", 1)
	c.dead.Proceed()
}

// withoutLock has the victim go on without the lock, as its Redis does not answer.
func (c *trial) withoutLock() {
	r := c.role()
	r.Redis, r.DBOnly = []string{"127.0.0.1:1"}, true
	c.victim(r)
}

// linked starts a victim whose way to the database is the returned link.
func (c *trial) linked(hold bool, set func(*testdb.Link)) *testdb.Link {
	k := testdb.NewLink(c, testdb.AddrOf(c, c.dsn))
	set(k)
	r := c.role()
	r.DSN, r.Hold = k.Through(c, c.dsn), hold
	c.victim(r)
	return k
}

func (c *trial) commitLost() { c.linked(false, func(k *testdb.Link) { k.Before.Store(true) }) }

func (c *trial) answerLost() { c.linked(false, func(k *testdb.Link) { k.After.Store(true) }) }

// unknown loses the answer to the COMMIT, and the database is out of reach afterwards.
func (c *trial) unknown() {
	k := c.linked(true, func(k *testdb.Link) { k.After.Store(true) })
	c.dead.await("stands", 1)
	k.Away.Store(true)
	c.dead.Proceed()
}
