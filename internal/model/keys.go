package model

import (
	"fmt"
	"math/bits"
)

// Operations with several keys: guard/plan.go, keys.go, acquire.go, finding.go, event.go and
// finish.go, each as far as several keys differ from one. Two callers, each of a process of
// its own, update the row of each key that they want, in the order of the keys. A set of
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
	Held uint8 // keys whose leases it has
	Lost uint8 // keys whose leases have ended
	Snap [keys]reading
	Row  uint8 // keys whose rows it has written
	Took uint8

	Busy    bool  // it was refused a key
	Refused uint8 // 1 + the key of the row whose write was refused
	Unheard bool  // its COMMIT was not answered
	Told    verdict
	Named   uint8 // 1 + the key that its event names
	Pending verdict
	Ended   outcome

	// What only the invariants look at.
	Gone    uint8 // keys that the engine has lost
	Foreign uint8 // keys of rows that another has written while it had their leases
	Reached uint8 // keys of rows whose write was answered
	Met     uint8 // keys that another was granted while it had their leases
}

var keyActions = append([]action{
	{anywhere, "%s calls Do", callSeveral},
	{anywhere, "%s stops waiting, as a lock is lost", stopWaiting},
	{anywhere, "%s begins its transaction", beginSeveral},
	{anywhere, "%s sends COMMIT", commitSeveral},
	{anywhere, "the database executes the COMMIT of %s", executeSeveral},
	{anywhere, "%s has the answer to its COMMIT", answerSeveral},
	{anywhere, "the connection of %s breaks, and its COMMIT is lost", cutSeveralBefore},
	{anywhere, "the connection of %s breaks, and the answer to its COMMIT is lost", cutSeveral},
	{anywhere, "the database rolls back what the lost connection of %s left open", dropSeveral},
	{anywhere, "%s has the session of its COMMIT ended, and its outcome proven", resolveSeveral},
	{anywhere, "%s gives up to find out what became of its COMMIT, and leaves its locks to expire", abandonSeveral},
	{anywhere, "%s publishes an event", publishSeveral},
	{anywhere, "the process of %s is killed", killSeveral},
}, eachKey(
	keyAction{"the engine grants the %s key to %%s", acquireKey},
	keyAction{"%%s is refused the %s key: ErrBusy", refuseKey},
	keyAction{"the %s lock of %%s is lost", loseKey},
	keyAction{"the watchdog finds that the %s lock of %%s is gone", noticeKey},
	keyAction{"the %s lock of %%s expires", expireKey},
	keyAction{"%%s writes the %s row", writeKey},
	keyAction{"%%s gives the %s lock back", releaseKey},
)...)

type keyAction struct {
	says string
	do   func(cfg *Config, s *State, i, k int) bool
}

// eachKey makes an action for each key.
func eachKey(of ...keyAction) (all []action) {
	for _, a := range of {
		for k, name := range keyNames {
			all = append(all, action{anywhere, fmt.Sprintf(a.says, name), func(cfg *Config, s *State, i int) bool { return a.do(cfg, s, i, k) }})
		}
	}
	return all
}

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

func callSeveral(_ *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != idle {
		return false
	}
	c.PC = asking
	return true
}

func acquireKey(cfg *Config, s *State, i, k int) bool {
	v, c := &s.Several, &s.Several.Calls[i]
	if c.PC != asking || c.Lost != 0 || cfg.next(i, c.Held) != k || v.Holder[k] != 0 && !cfg.Weak.GrantTwice {
		return false
	}
	v.Holder[k] = owner(i)
	c.Held |= 1 << k
	for j := range v.Calls {
		if d := &v.Calls[j]; j != i && d.has(k) && d.PC != closing { // it may still commit
			d.Met |= 1 << k
		}
	}
	if cfg.Weak.SnapshotBeforeGrant {
		c.see(v)
	}
	if cfg.next(i, c.Held) < 0 {
		c.PC = granted
	}
	return true
}

// has reports whether the call has a lease on a key that it has not given back.
func (c *transfer) has(k int) bool {
	return c.Held&(1<<k) != 0 && c.PC >= asking && c.PC <= closing
}

// see is what the snapshot of the transaction shows. The first one counts.
func (c *transfer) see(v *several) {
	for k := range c.Snap {
		if c.Snap[k] == 0 {
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
	if c.Held == 0 {
		c.conclude()
	}
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
	c.see(&s.Several)
	c.PC, c.Tx = writing, active
	return true
}

// writeKey is a versioned update of the row of a key, and its answer.
func writeKey(cfg *Config, s *State, i, k int) bool {
	v, c := &s.Several, &s.Several.Calls[i]
	if c.PC != writing || bits.TrailingZeros8(cfg.Keys[i]&^c.Row) != k {
		return false
	}
	if c.lapsed(cfg) {
		c.close(rolledBack)
		return true
	}
	for j := range v.Calls {
		if j != i && v.Calls[j].Row&(1<<k) != 0 && v.Calls[j].Tx != noTx {
			return false // it waits for the row
		}
	}
	c.Reached |= 1 << k
	if read(v.Rows[k].Version) != c.Snap[k] && !cfg.Weak.NoVersionCompare {
		c.Refused = owner(k)
		c.close(refusedWrite)
		return true
	}
	if c.Row |= 1 << k; c.Row == cfg.Keys[i] {
		c.PC = written
	}
	return true
}
