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

// refuseCommitOfSeveral is a COMMIT that the database answers with a deadlock.
func refuseCommitOfSeveral(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != committing || c.Tx != commits || !s.spend(cfg, &s.Left.Deadlock) {
		return false
	}
	c.again()
	return true
}

// breakSeveral is a connection that breaks before COMMIT, or a BEGIN that is not answered.
func breakSeveral(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != granted && c.PC != writing && c.PC != written || !s.spend(cfg, &s.Left.Cut) {
		return false
	}
	c.close(rolledBack)
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

func endSessionOfSeveral(_ *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != unknown || c.Tx == noTx {
		return false
	}
	c.Tx, c.Row = noTx, 0
	return true
}

// resolveSeveral is a proof of the outcome. It is looked for no more once the call asks for its locks.
func resolveSeveral(_ *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	switch {
	case c.PC != unknown, c.Tx != noTx, c.Asked != 0:
		return false
	case c.Took > 0:
		c.close(committed)
	default:
		c.close(rolledBack)
	}
	return true
}

// askKey is the question whether a lock is there, at the end of a call whose outcome has remained unknown.
// All are asked at once, and answered in any order. Where the lease has ended nobody is asked.
func askKey(_ *Config, s *State, i, k int) bool {
	c := &s.Several.Calls[i]
	if bit := uint8(1) << k; c.PC != unknown || bit&c.Held&^c.Lost&^c.Asked == 0 {
		return false
	}
	c.Asked |= 1 << k
	if s.Several.Holder[k] != owner(i) {
		c.Missed |= 1 << k
	}
	return true
}

// abandonSeveral reports the first lock that is gone, or else names the key that the caller has wished for first.
func abandonSeveral(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != unknown || c.Held&^c.Lost&^c.Asked != 0 {
		return false
	}
	c.loseAny(cfg, c.Missed|c.Lost&^c.Asked)
	c.Res, c.PC = unsure, reporting
	if c.Pending == noVerdict {
		c.tell(saysUnknown, cfg.row(i, 0))
	}
	c.Asked, c.Missed = 0, 0
	return true
}

// loseAny notes that keys were found lost. The first one counts.
func (c *transfer) loseAny(cfg *Config, which uint8) {
	for k := range keys {
		if which&(1<<k) != 0 {
			c.lose(cfg, k)
		}
	}
}

// lose notes that a key was found lost, if it is the first one.
func (c *transfer) lose(cfg *Config, k int) {
	if c.Pending == noVerdict && (k == 0 || !cfg.Weak.FirstLeaseOnly) {
		c.tell(saysLost, k)
	}
}

func (c *transfer) tell(v verdict, k int) { c.Pending, c.Named = v, owner(k) }

// giveSeveralBack begins to give back all keys at once. A lease that has ended by now counts.
func giveSeveralBack(cfg *Config, s *State, i int) bool {
	c := &s.Several.Calls[i]
	if c.PC != closing {
		return false
	}
	if c.PC, c.Lapsed = freeing, c.Lost; c.Held == 0 {
		c.conclude(cfg)
	}
	return true
}

// releaseKey gives one key back: they arrive in any order.
func releaseKey(cfg *Config, s *State, i, k int) bool {
	v, c := &s.Several, &s.Several.Calls[i]
	if c.PC != freeing || c.Held&(1<<k) == 0 {
		return false
	}
	if v.Holder[k] == owner(i) {
		v.Holder[k] = 0
	} else {
		c.Lost |= 1 << k
	}
	if c.Held &^= 1 << k; c.Held == 0 {
		c.conclude(cfg)
	}
	return true
}

// conclude is run.finish behind the release. An overlap outweighs a loss, and of an operation that was
// rolled back the loss that it has noticed one that its release has found.
func (c *transfer) conclude(cfg *Config) {
	if c.Refused == 0 && c.Ended != committed {
		c.loseAny(cfg, c.Lapsed)
	}
	c.loseAny(cfg, c.Lost)
	switch {
	case c.Refused != 0:
		c.Res = intercepted
		c.tell(saysOverlap, int(c.Refused-1))
	case c.Ended == committed:
		c.Res = done
	case c.Lapsed != 0:
		c.Res = lostLease
	case c.Busy:
		c.Res = busy
	default:
		c.Res = failed
	}
	c.Lapsed = 0
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
	if !c.has(k) || c.PC == freeing || c.Lost&(1<<k) != 0 || s.Several.Holder[k] == owner(i) {
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
