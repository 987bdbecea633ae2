package model

import "math/bits"

// How operations with several keys end, and what can befall them: guard/attempt.go,
// finish.go and event.go.

func commitSeveral(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	switch {
	case c.PC != written:
		return false
	case c.lapsed(cfg):
		c.close(rolledBack)
		return true
	}
	c.PC, c.Tx = committing, commits
	return true
}

func executeSeveral(_ *Config, s *State, i int) bool {
	v, c := &s.Several, &s.Several.Calls[i]
	if c.Tx != commits {
		return false
	}
	for k := range v.Rows {
		if c.Row&(1<<k) == 0 {
			continue
		}
		r, base := &v.Rows[k], uint8(c.Snap[k]-1)
		r.Twice |= r.Based & (1 << base)
		r.Based |= 1 << base
		r.Version = base + 1
		for j := range v.Calls {
			if d := &v.Calls[j]; j != i && d.has(k) {
				d.Foreign |= 1 << k
			}
		}
	}
	c.Tx, c.Row = noTx, 0
	c.Took++
	return true
}

func answerSeveral(_ *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != committing || c.Took == 0 {
		return false
	}
	c.close(committed)
	return true
}

func cutSeveralBefore(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != committing || c.Tx != commits || !s.spend(cfg, &s.Left.Cut) {
		return false
	}
	c.PC, c.Unheard, c.Tx = unknown, true, dropped
	return true
}

func cutSeveral(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != committing || !s.spend(cfg, &s.Left.Cut) {
		return false
	}
	c.PC, c.Unheard = unknown, true
	return true
}

func dropSeveral(_ *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.Tx != dropped {
		return false
	}
	c.Tx, c.Row = noTx, 0
	return true
}

func resolveSeveral(_ *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	switch {
	case c.PC != unknown:
		return false
	case c.Took > 0:
		c.close(committed)
	default:
		c.close(rolledBack)
	}
	return true
}

// abandonSeveral asks for each key whether its lock is lost.
func abandonSeveral(cfg *Config, s *State, i int) bool {
	v, c := &s.Several, &s.Several.Calls[i]
	if c.PC != unknown {
		return false
	}
	for k := range v.Holder {
		if c.Held&(1<<k) != 0 && v.Holder[k] != owner(i) {
			c.lose(cfg, k)
		}
	}
	c.Res, c.PC = unsure, reporting
	if c.Pending == noVerdict {
		c.tell(saysUnknown, bits.TrailingZeros8(c.Held))
	}
	return true
}

// lose notes that a key was found lost, if it is the first one.
func (c *transfer) lose(cfg *Config, k int) {
	if c.Pending == noVerdict && (k == 0 || !cfg.Weak.FirstLeaseOnly) {
		c.tell(saysLost, k)
	}
}

func (c *transfer) tell(v verdict, k int) { c.Pending, c.Named = v, owner(k) }

// releaseKey gives one key back: all are given back at once, and arrive in any order.
func releaseKey(cfg *Config, s *State, i, k int) bool {
	v, c := &s.Several, &s.Several.Calls[i]
	if c.PC != closing || c.Held&(1<<k) == 0 {
		return false
	}
	gone := c.Lost&(1<<k) != 0
	if v.Holder[k] == owner(i) {
		v.Holder[k] = 0
	} else {
		gone = true
	}
	if c.Held &^= 1 << k; gone {
		c.Lost |= 1 << k
	}
	if c.Held == 0 {
		for k := range v.Holder {
			if c.Lost&(1<<k) != 0 {
				c.lose(cfg, k)
			}
		}
		c.conclude()
	}
	return true
}

// conclude is call.finish behind the release. An overlap outweighs a loss.
func (c *transfer) conclude() {
	switch {
	case c.Refused != 0:
		c.Res = intercepted
		c.tell(saysOverlap, int(c.Refused-1))
	case c.Ended == committed:
		c.Res = done
	case c.Lost != 0:
		c.Res = lostLease
	case c.Busy:
		c.Res = busy
	default:
		c.Res = failed
	}
	if c.PC = reporting; c.Pending == noVerdict {
		c.PC = returned
	}
}

func publishSeveral(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != reporting {
		return false
	}
	c.Told, c.Pending, c.PC = c.Pending, noVerdict, returned
	if cfg.Weak.NameFirst {
		c.Named = owner(bits.TrailingZeros8(cfg.Keys[i]))
	}
	return true
}

func loseKey(cfg *Config, s *State, i, k int) bool {
	if s.Several.Holder[k] != owner(i) || !s.spend(cfg, &s.Left.Lose) {
		return false
	}
	s.Several.Holder[k] = 0
	s.Several.Calls[i].Gone |= 1 << k
	return true
}

func noticeKey(_ *Config, s *State, i, k int) bool {
	c := &s.Several.Calls[i]
	if !c.has(k) || c.PC >= closing || c.Lost&(1<<k) != 0 || s.Several.Holder[k] == owner(i) {
		return false
	}
	c.Lost |= 1 << k
	return true
}

// expireKey is the end of a lock that nobody renews.
func expireKey(_ *Config, s *State, i, k int) bool {
	c := &s.Several.Calls[i]
	if s.Several.Holder[k] != owner(i) || c.PC != dead && c.Res != unsure {
		return false
	}
	s.Several.Holder[k] = 0
	return true
}

func killSeveral(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC == idle || c.PC == returned || c.PC == dead || !s.spend(cfg, &s.Left.Kill) {
		return false
	}
	c.PC = dead
	if c.Tx == active {
		c.Tx = dropped
	}
	return true
}
