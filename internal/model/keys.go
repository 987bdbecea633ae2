package model

import (
	"fmt"
	"math/bits"
)

// Operations with several keys: guard/plan.go, keys.go, acquire.go, finding.go, event.go and
// finish.go, each as far as several keys differ from one. Two callers, each of a process of
// its own, update the row of each key that they want, in the order of their wishes. A set of
// keys has a bit for each; the first key is the smaller one.

const keys = 2

// several is what there is in such a configuration.
type several struct {
	Holder [keys]uint8 // who has the key in the engine, from 1
	Rows   [keys]Row
	Calls  [processes]transfer
}

// A transfer is one call of Do with several keys.
type transfer struct {
	PC   pc
	Res  result
	Tx   txState
	Held uint8         // keys whose leases it has
	Lost uint8         // keys whose leases have ended
	Snap [keys]reading // what it saw first of the rows
	Read uint8         // keys whose rows an attempt has loaded
	Row  uint8         // keys whose rows it has written
	Took uint8

	Busy    bool  // it was refused a key
	Refused uint8 // 1 + the key of the row whose write was refused
	Unheard bool  // its COMMIT was not answered
	Lapsed  uint8 // keys whose leases had ended when it began to give them back
	Asked   uint8 // keys whose locks it has asked for at the end of a call of unknown outcome
	Missed  uint8 // those of them that were gone
	Told    verdict
	Named   uint8 // 1 + the key that its event names
	Pending verdict
	Ended   outcome

	// What only the invariants look at.
	Gone    uint8 // keys that the engine has lost
	Foreign uint8 // keys of rows that another has written while it had their leases
	Reached uint8 // keys of rows whose write was answered
	Met     uint8 // keys that another was granted while it had their leases and was still to look at their locks
}

// What actions of callers with several keys say. Those of a key have its name.
const (
	stopSays        = "%s stops waiting, as a lock is lost"
	dropSays        = "the database rolls back what the lost connection of %s left open"
	endSays         = "%s has the session of its COMMIT ended"
	resolveSays     = "%s has a proof of what became of its COMMIT"
	leaveSays       = "%s gives up to find out what became of its COMMIT, and leaves its locks to expire"
	giveAllBackSays = "%s begins to give its locks back"
	grantKeySays    = "the engine grants the %s key to %%s"
	refuseKeySays   = "%%s is refused the %s key: ErrBusy"
	loseKeySays     = "the %s lock of %%s is lost"
	noticeKeySays   = "the watchdog finds that the %s lock of %%s is gone"
	expireKeySays   = "the %s lock of %%s expires"
	seeKeySays      = "%%s sees the %s row first"
	findChangedSays = "%%s loads the %s row, which has changed"
	takeChangedSays = "%%s loads the %s row, whose change passes for its own"
	writeKeySays    = "%%s writes the %s row"
	askKeySays      = "%%s asks whether it has the %s lock"
	releaseKeySays  = "%%s gives the %s lock back"
)

var keyActions = append([]action{
	{anywhere, "%s calls Do", callSeveral},
	{anywhere, stopSays, stopWaiting},
	{anywhere, beginSays, beginSeveral},
	{anywhere, "the connection of %s breaks", breakSeveral},
	{anywhere, "the database ends the transaction of %s: deadlock", deadlockSeveral},
	{anywhere, commitSays, commitSeveral},
	{anywhere, executeSays, executeSeveral},
	{anywhere, "%s has the answer to its COMMIT", answerSeveral},
	{anywhere, "the database refuses the COMMIT of %s: deadlock", refuseCommitOfSeveral},
	{anywhere, "the connection of %s breaks, and its COMMIT is lost", cutSeveralBefore},
	{anywhere, "the connection of %s breaks, and the answer to its COMMIT is lost", cutSeveral},
	{anywhere, dropSays, dropSeveral},
	{anywhere, endSays, endSessionOfSeveral},
	{anywhere, resolveSays, resolveSeveral},
	{anywhere, leaveSays, abandonSeveral},
	{anywhere, giveAllBackSays, giveSeveralBack},
	{anywhere, "%s publishes an event", publishSeveral},
	{anywhere, "the process of %s is killed", killSeveral},
}, eachKey(
	keyAction{grantKeySays, acquireKey},
	keyAction{refuseKeySays, refuseKey},
	keyAction{loseKeySays, loseKey},
	keyAction{noticeKeySays, noticeKey},
	keyAction{expireKeySays, expireKey},
	keyAction{seeKeySays, seeKey},
	keyAction{findChangedSays, findChanged},
	keyAction{takeChangedSays, takeChanged},
	keyAction{writeKeySays, writeKey},
	keyAction{askKeySays, askKey},
	keyAction{releaseKeySays, releaseKey},
)...)

type keyAction struct {
	says string
	do   func(cfg *Config, s *State, i, k int) bool
}

// eachKey makes an action for each key.
func eachKey(of ...keyAction) (all []action) {
	for _, a := range of {
		for k := range keys {
			all = append(all, action{anywhere, ofKey(a.says, k), func(cfg *Config, s *State, i int) bool { return a.do(cfg, s, i, k) }})
		}
	}
	return all
}

// ofKey names a key in what an action says.
func ofKey(says string, k int) string { return fmt.Sprintf(says, keyNames[k]) }

var keyNames = [keys]string{"first", "second"}

// several reports whether the callers have several keys.
func (cfg *Config) several() bool { return cfg.Keys != [processes]uint8{} }

// next returns the next key that a caller acquires, or -1 if it has all.
func (cfg *Config) next(i int, held uint8) int {
	switch left := cfg.Keys[i] &^ held; {
	case left == 0:
		return -1
	case cfg.Weak.AnyOrder && i > 0:
		return bits.Len8(left) - 1
	default:
		return bits.TrailingZeros8(left)
	}
}

// row returns the next row that a caller writes, by its key.
func (cfg *Config) row(i int, written uint8) int {
	left := cfg.Keys[i] &^ written
	if cfg.Swapped && i > 0 {
		return bits.Len8(left) - 1
	}
	return bits.TrailingZeros8(left)
}

func callSeveral(_ *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != idle {
		return false
	}
	c.PC = asking
	return true
}

// acquireKey is an acquire. Who does not wait makes it though a lock before it is lost meanwhile.
func acquireKey(cfg *Config, s *State, i, k int) bool {
	v, c := &s.Several, &s.Several.Calls[i]
	if c.PC != asking || c.Lost != 0 && !cfg.Refuse || cfg.next(i, c.Held) != k || v.Holder[k] != 0 && !cfg.Weak.GrantTwice {
		return false
	}
	v.Holder[k] = owner(i)
	c.Held |= 1 << k
	for j := range v.Calls {
		if d := &v.Calls[j]; j != i && d.has(k) && d.PC < closing && d.Asked&(1<<k) == 0 {
			d.Met |= 1 << k // a call that has asked for the lock at its end does not look at it again
		}
	}
	if cfg.Weak.SnapshotBeforeGrant {
		c.see(v, cfg.Keys[i])
	}
	if cfg.next(i, c.Held) < 0 {
		c.PC = granted
	}
	return true
}

// has reports whether the call has a lease on a key that it has not given back.
func (c *transfer) has(k int) bool {
	return c.Held&(1<<k) != 0 && c.PC >= asking && c.PC <= freeing
}

// see is what a transaction is shown of rows. What it saw first counts.
func (c *transfer) see(v *several, which uint8) {
	for k := range c.Snap {
		if which&(1<<k) != 0 && c.Snap[k] == 0 {
			c.Snap[k] = read(v.Rows[k].Version)
		}
	}
}

// refuseKey gives back all that the caller has got.
func refuseKey(cfg *Config, s *State, i, k int) bool {
	c := &s.Several.Calls[i]
	if !cfg.Refuse || c.PC != asking || cfg.next(i, c.Held) != k || s.Several.Holder[k] == 0 {
		return false
	}
	c.Busy = true
	if cfg.Weak.KeepSome {
		c.Held = 0
	}
	c.close(rolledBack)
	return true
}

func (c *transfer) close(o outcome) {
	if o != committed {
		c.Tx, c.Row = noTx, 0
	}
	c.PC, c.Ended = closing, o
}

// lapsed is call.alive.
func (c *transfer) lapsed(cfg *Config) bool {
	if cfg.Weak.FirstLeaseOnly {
		return c.Lost&1 != 0
	}
	return c.Lost != 0
}

func stopWaiting(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != asking || !c.lapsed(cfg) {
		return false
	}
	c.close(rolledBack)
	return true
}

func beginSeveral(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	switch {
	case c.PC != granted:
		return false
	case c.lapsed(cfg):
		c.close(rolledBack)
		return true
	}
	if !cfg.Postgres {
		c.see(&s.Several, cfg.Keys[i])
	}
	c.PC, c.Tx = writing, active
	return true
}

// seeKey is the first look at a row, on PostgreSQL, whose transaction is shown each row as it is then.
func seeKey(cfg *Config, s *State, i, k int) bool {
	c := &s.Several.Calls[i]
	if !cfg.Postgres || c.PC != writing || cfg.Keys[i]&(1<<k) == 0 || c.Snap[k] != 0 || c.lapsed(cfg) {
		return false
	}
	c.see(&s.Several, 1<<k)
	return true
}

// showsChange reports whether the next row that a caller loads has changed since it was seen first: on
// PostgreSQL, or by an attempt before.
func (s *State) showsChange(cfg *Config, i, k int) bool {
	c := &s.Several.Calls[i]
	if c.PC != writing || cfg.row(i, c.Row) != k || c.lapsed(cfg) {
		return false
	}
	seen := c.Snap[k] != 0 && (cfg.Postgres || c.Read&(1<<k) != 0)
	return seen && read(s.Several.Rows[k].Version) != c.Snap[k]
}

// findChanged is a change that is noticed.
func findChanged(cfg *Config, s *State, i, k int) bool {
	c := &s.Several.Calls[i]
	if !s.showsChange(cfg, i, k) || c.Row != 0 || cfg.Weak.NoVersionCompare {
		return false
	}
	c.refuse(k)
	return true
}

// takeChanged is a change that passes for the transaction's own, as that has written another row of the
// table. The version that it loads is the one that counts then.
func takeChanged(cfg *Config, s *State, i, k int) bool {
	c := &s.Several.Calls[i]
	if !s.showsChange(cfg, i, k) || c.Row == 0 {
		return false
	}
	c.Snap[k] = read(s.Several.Rows[k].Version)
	return true
}

// refuse is the end of a call that has met a change of the row of a key.
func (c *transfer) refuse(k int) {
	c.Refused = owner(k)
	c.close(refusedWrite)
}

// deadlockSeveral is the end of one of two who wait for each other's rows. It runs again under its locks.
func deadlockSeveral(cfg *Config, s *State, i int) bool {
	c, d := &s.Several.Calls[i], &s.Several.Calls[1-i]
	if c.PC != writing || d.PC != writing || d.Row&(1<<cfg.row(i, c.Row)) == 0 || c.Row&(1<<cfg.row(1-i, d.Row)) == 0 {
		return false
	}
	c.again()
	return true
}

// again runs the operation again. It remembers the rows that it has loaded.
func (c *transfer) again() {
	c.PC, c.Tx, c.Row = granted, noTx, 0
	for k := range c.Snap {
		if c.Read&(1<<k) == 0 {
			c.Snap[k] = 0
		}
	}
}

// writeKey is a versioned update of the row of a key, and its answer.
func writeKey(cfg *Config, s *State, i, k int) bool {
	v, c := &s.Several, &s.Several.Calls[i]
	if c.PC != writing || cfg.row(i, c.Row) != k {
		return false
	}
	if c.lapsed(cfg) {
		c.close(rolledBack)
		return true
	}
	changed := read(v.Rows[k].Version) != c.Snap[k]
	if c.Snap[k] == 0 || v.locked(i, k) && (!cfg.Postgres || !changed) { // which sees no row to wait for
		return false
	}
	c.Reached, c.Read = c.Reached|1<<k, c.Read|1<<k
	if changed && !cfg.Weak.NoVersionCompare {
		c.refuse(k)
		return true
	}
	if c.Row |= 1 << k; c.Row == cfg.Keys[i] {
		c.PC = written
	}
	return true
}

// locked reports whether another transaction has written the row of a key.
func (v *several) locked(i, k int) bool {
	d := &v.Calls[1-i]
	return d.Row&(1<<k) != 0 && d.Tx != noTx
}
