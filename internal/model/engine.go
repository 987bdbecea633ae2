package model

// The engine, and what a Locker does with it: lock/attempt.go, queue.go, release.go,
// loss.go, orphans.go and reclaim.go.

var engineActions = []action{
	{idle, "%s wants the lock", ask},
	{idle, "%s wants the lock, which another caller of its process has: ErrBusy", beBusyHere},
	{asking, "the engine grants the lock to %s", acquire},
	{asking, "the engine grants a lock to %s, whose answer is lost", acquireUnheard},
	{asking, "the acquire of %s is held up on its way, and given up", acquireHeldUp},
	{asking, "the time of %s ends before the answer to its acquire", runShort},
	{anywhere, "the engine executes the late acquire of %s", acquireLate},
	{anywhere, "the Locker of %s releases the lock that nobody uses", releaseOrphan},
	{anywhere, "the Locker forgets the request of %s that got no answer", forgetOrphan},
	{asking, "%s meets a lock of its own process that nobody uses, which is released", reclaim},
	{asking, "%s is refused: ErrBusy", beBusy},
	{anywhere, "the watchdog finds that the lock of %s is gone", renewGone},
	{anywhere, "the watchdog sees that the deadline of the lock of %s has passed", notice},
	{anywhere, passSays, passAbandoned},
	{anywhere, "the lock of %s expires", expire},
	{closing, "%s gives the lock back", giveBack},
	{closing, keepsSays, giveBackAlone},
	{freeing, "the engine takes the lock back from %s", takeBack},
	{freeing, "%s gives the lock back, and the request is lost", giveBackUnsent},
	{freeing, "%s gives the lock back, and the answer is lost", giveBackUnheard},
}

func ask(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if cfg.Refuse && s.proc(cfg, i).Head != 0 || c.Tx != noTx {
		return false
	}
	s.enter(cfg, i)
	if cfg.Weak.SnapshotBeforeGrant {
		c.Snap = read(s.Row.Version)
	}
	c.Stored = cfg.request() && s.Row.Version > 0
	if cfg.Crew {
		c.Called = read(s.Row.Version)
	}
	return true
}

// enter makes caller i the head of its process's queue, or puts it there, unless it does not wait.
func (s *State) enter(cfg *Config, i int) {
	c, p := &s.Callers[i], s.proc(cfg, i)
	switch {
	case p.Head == 0:
		p.Head, c.PC = owner(i), asking
	case cfg.Refuse:
		c.Res, c.PC = engaged, returning
	default:
		c.PC = queued
	}
}

// beBusyHere is a refusal by the queue of the process: nothing is asked.
func beBusyHere(cfg *Config, s *State, i int) bool {
	if !cfg.Refuse || s.proc(cfg, i).Head == 0 {
		return false
	}
	s.Callers[i].Res, s.Callers[i].PC = engaged, returning
	return true
}

func acquire(cfg *Config, s *State, i int) bool {
	if s.Holder != 0 && !cfg.Weak.GrantTwice || s.Node != up || !s.asks(cfg, i) || s.marked(cfg, i) || s.uses(i) {
		return false
	}
	s.Holder = owner(i)
	s.Granted++
	s.Grants[i] = Grant{State: held, Order: s.Granted}
	s.lease(i, owner(i))
	return true
}

// lease gives caller i a grant, and notes whose transaction may take effect under another
// one at the same time.
func (s *State) lease(i int, owner uint8) {
	c := &s.Callers[i]
	c.Grant, c.PC, c.Denied = owner, granted, false
	for j := range s.Callers {
		d := &s.Callers[j]
		if j == i || !d.holds() || d.Grant == owner || s.Grants[d.Grant-1].Local {
			continue
		}
		if d.PC == conflicted || (d.PC == closing || d.PC == freeing) && d.Ended != committed { // it has been rolled back
			continue
		}
		if s.Grants[d.Grant-1].Order < s.Grants[owner-1].Order {
			d.Met |= 1 << i
		} else {
			c.Met |= 1 << j
		}
	}
}

func acquireUnheard(cfg *Config, s *State, i int) bool {
	if s.Holder != 0 || s.Node != up || !s.asks(cfg, i) || s.marked(cfg, i) || s.uses(i) || !s.spend(cfg, &s.Left.Mute) {
		return false
	}
	s.Holder = owner(i)
	s.Grants[i] = Grant{State: orphaned}
	s.Callers[i].InVain = true
	s.endUnlocked(cfg, i, unavailable)
	return true
}

func acquireHeldUp(cfg *Config, s *State, i int) bool {
	if s.uses(i) || !s.spend(cfg, &s.Left.Late) {
		return false
	}
	s.Grants[i] = Grant{State: orphaned, Late: true}
	s.Callers[i].InVain = true
	s.endUnlocked(cfg, i, unavailable)
	return true
}

// runShort is the end of a caller's own time, which says nothing of the engine.
func runShort(cfg *Config, s *State, i int) bool {
	if s.Node != up || s.uses(i) || !s.spend(cfg, &s.Left.Short) {
		return false
	}
	s.Grants[i] = Grant{State: orphaned, Late: true}
	r := hurried
	if cfg.Weak.ShortIsOutage {
		r = unavailable
	}
	s.endUnlocked(cfg, i, r)
	return true
}

// endUnlocked is the end of a call that got no lock.
func (s *State) endUnlocked(cfg *Config, i int, r result) {
	s.Callers[i].Res, s.Callers[i].PC = r, returning
	s.leave(cfg, i)
}

func acquireLate(_ *Config, s *State, i int) bool {
	g := &s.Grants[i]
	if !g.Late || s.Holder != 0 {
		return false
	}
	g.Late, s.Holder = false, owner(i)
	return true
}

func releaseOrphan(cfg *Config, s *State, i int) bool {
	if s.Grants[i].State != orphaned || s.Holder != owner(i) || s.proc(cfg, i).Dead {
		return false
	}
	s.Holder, s.Grants[i].State = 0, ended
	return true
}

// forgetOrphan is the end of a ttl since the request was given up.
func forgetOrphan(_ *Config, s *State, i int) bool {
	g := &s.Grants[i]
	if g.State != orphaned || !g.Late {
		return false
	}
	g.State = ended
	return true
}

// reclaimable reports whether the engine has a lock of caller i's own process that the
// Locker has given up, or does not know any more.
func (s *State) reclaimable(cfg *Config, i int) bool {
	if s.Holder == 0 || cfg.Callers[s.Holder-1] != cfg.Callers[i] {
		return false
	}
	g := s.Grants[s.Holder-1].State
	return g == orphaned || g == ended && !cfg.Weak.ForgetOrphan
}

func reclaim(cfg *Config, s *State, i int) bool {
	if !s.reclaimable(cfg, i) || s.Node != up {
		return false
	}
	s.Grants[s.Holder-1].State = ended
	s.Holder = 0
	return true
}

func beBusy(cfg *Config, s *State, i int) bool {
	if !cfg.Refuse || s.Holder == 0 || s.reclaimable(cfg, i) || s.marked(cfg, i) {
		return false
	}
	s.endUnlocked(cfg, i, busy)
	return true
}

// leave makes the next caller of the process the head of its queue.
func (s *State) leave(cfg *Config, i int) {
	p := s.proc(cfg, i)
	p.Head = 0
	if j := s.heir(cfg, i); j >= 0 {
		p.Head, s.Callers[j].PC = owner(j), asking
	}
}

// heir returns the caller of i's process that waits in the queue, or -1.
func (s *State) heir(cfg *Config, i int) int {
	for j := range s.Callers {
		if cfg.Callers[j] == cfg.Callers[i] && s.Callers[j].PC == queued {
			return j
		}
	}
	return -1
}

// lose ends a grant that can't be relied on any more. The holder keeps its lease,
// which has ended.
func (s *State) lose(cfg *Config, i int) {
	s.Grants[i].State = lost
	s.leave(cfg, i)
}

// lapsed is Lease.Err: it looks at the clock itself.
func (s *State) lapsed(cfg *Config, i int) bool {
	g := s.grant(i)
	if g.State == held && g.Past {
		s.lose(cfg, int(s.Callers[i].Grant-1))
	}
	return g.State == lost
}

func renewGone(cfg *Config, s *State, i int) bool {
	g := &s.Grants[i]
	if g.State != held || g.Local || s.Node == silent || s.Holder == owner(i) || s.proc(cfg, i).Dead {
		return false
	}
	s.lose(cfg, i)
	return true
}

func notice(cfg *Config, s *State, i int) bool {
	if s.Grants[i].State != held || !s.Grants[i].Past || s.proc(cfg, i).Dead {
		return false
	}
	s.lose(cfg, i)
	return true
}

func passAbandoned(cfg *Config, s *State, i int) bool {
	g := &s.Grants[i]
	if g.State != abandoned || g.Past || s.proc(cfg, i).Dead {
		return false
	}
	g.Past, g.Shut = true, false
	s.leave(cfg, i)
	return true
}

func expire(cfg *Config, s *State, i int) bool {
	g := &s.Grants[i]
	unrenewed := g.Past || g.State == orphaned || g.State == ended || s.proc(cfg, i).Dead
	if s.Holder != owner(i) || !unrenewed {
		return false
	}
	s.Holder, g.Gone = 0, true
	return true
}

// giveBack is Lease.release as far as the Locker decides it. Who comes to its queue while the
// release is on the way is not handed the lock.
func giveBack(cfg *Config, s *State, i int) bool {
	c, g := &s.Callers[i], s.grant(i)
	gone, scatters := false, s.scatters(cfg, i)
	switch j := s.heir(cfg, i); {
	case s.lapsed(cfg, i):
		gone, g.State = true, orphaned
	case g.Local:
		g.State = ended
		s.leave(cfg, i)
	case j >= 0 && !s.marks(cfg, i) && !s.marks(cfg, j):
		s.proc(cfg, i).Head = owner(j)
		c.PC, c.Handed, g.Twice = returning, true, true
		s.lease(j, c.Grant)
	default:
		c.Scatters, c.PC, g.State = scatters, freeing, ended
		return true
	}
	c.Scatters = scatters
	s.conclude(cfg, i, gone)
	return true
}

// giveBackAlone is a release although the next caller waits. A lock is handed over more than once for a
// short while only, and no more once a renewal has failed, as it may have in an outage.
func giveBackAlone(cfg *Config, s *State, i int) bool {
	c, g := &s.Callers[i], s.grant(i)
	if !g.Twice && s.Outages == 0 || g.Local || g.State != held || g.Past || s.heir(cfg, i) < 0 {
		return false
	}
	c.Scatters, c.PC, g.State = s.scatters(cfg, i), freeing, ended
	return true
}

func takeBack(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if s.Node == silent {
		return false
	}
	gone := s.Holder != c.Grant
	if !gone {
		s.Holder = 0
	}
	s.mark(cfg, i)
	s.leave(cfg, i)
	if cfg.Weak.NoReleaseQuestion || cfg.Weak.ForgetLoss && c.Grant != owner(i) {
		gone = false
	}
	s.conclude(cfg, i, gone)
	return true
}

func giveBackUnsent(cfg *Config, s *State, i int) bool { return giveBackMute(cfg, s, i, false) }

func giveBackUnheard(cfg *Config, s *State, i int) bool { return giveBackMute(cfg, s, i, true) }

func giveBackMute(cfg *Config, s *State, i int, executed bool) bool {
	c, g := &s.Callers[i], s.grant(i)
	if s.Node == silent && executed {
		return false
	}
	if s.Node != silent && !s.spend(cfg, &s.Left.Mute) {
		return false
	}
	g.State, c.FreeUnheard = orphaned, true
	if executed && s.Holder == c.Grant {
		s.Holder = 0
	}
	if executed {
		s.mark(cfg, i)
	}
	s.leave(cfg, i)
	s.conclude(cfg, i, false)
	return true
}
