package model

// The database, and what internal/dbtx does with it. Both write one row, which the first
// writer locks until its transaction ends; the second one waits.

var databaseActions = []action{
	{granted, "%s begins its transaction", begin},
	{granted, "%s begins its transaction on a node that lacks the last commit", beginBehind},
	{looked, "%s loads the row", loadNow},
	{loaded, "%s sends its write", sendWrite},
	{writing, "the database answers the write of %s", answerWrite},
	{writing, "the write of %s is cancelled, as its lease has ended", cancelWrite},
	{refused, "%s rolls back and reads the row again", reread},
	{deadlocked, "%s looks for the row after the deadlock", lookAfterDeadlock},
	{written, "%s sends COMMIT", sendCommit},
	{anywhere, "the database executes the COMMIT of %s", executeCommit},
	{committing, "%s has the answer to its COMMIT", answerCommit},
	{anywhere, "the database rolls back what the lost connection of %s left open", dropSession},
	{unknown, "%s has the session of its COMMIT ended", endSession},
	{resolving, "%s looks for a proof of what became of its COMMIT", resolve},
	{unknown, "%s gives up to find out what became of its COMMIT", giveUp},
	{resolving, "%s gives up to find out what became of its COMMIT", giveUp},
	{anywhere, "the database writes its log to the disk, which holds the commit of %s then", flush},
}

func begin(cfg *Config, s *State, i int) bool { return beginAt(cfg, s, i, s.Row.Version) }

func beginBehind(cfg *Config, s *State, i int) bool {
	return cfg.Weak.LaggingNode && s.Row.Version > 0 && beginAt(cfg, s, i, s.Row.Version-1)
}

func beginAt(cfg *Config, s *State, i int, version uint8) bool {
	c := &s.Callers[i]
	if s.gathers(cfg, i) {
		return false
	}
	if s.lapsed(cfg, i) {
		c.fail()
		return true
	}
	if s.grant(i).Local {
		c.Mem = 0
	}
	c.Tx = active
	if !cfg.Weak.SnapshotBeforeGrant || c.Snap == 0 {
		c.Snap = read(version)
	}
	switch {
	case cfg.Postgres:
		if !cfg.RawSQL {
			c.see(c.Snap)
			c.Known = true
		}
		c.PC = looked
	case cfg.Changed:
		s.load(cfg, i, read(s.Row.Version))
	default:
		s.load(cfg, i, c.Snap)
	}
	return true
}

func loadNow(cfg *Config, s *State, i int) bool {
	s.load(cfg, i, read(s.Row.Version))
	return true
}

// load is what an update does first. A row that has changed since it was seen first is
// a conflict.
func (s *State) load(cfg *Config, i int, now reading) {
	c := &s.Callers[i]
	c.PC = loaded
	if cfg.Weak.ClaimLast {
		c.PC = working
	}
	if !cfg.Update {
		return
	}
	switch {
	case c.Mem.changedTo(now, true):
		c.Found = evidence{There: now > 1, Changed: !cfg.Weak.NoComparison}
		c.rollback()
		c.PC = conflicted
	case now <= 1: // record not found
		c.rollback()
		c.fail()
	default:
		c.see(now)
		c.Known = true
		c.Base = uint8(now - 1)
		if cfg.Brought {
			c.Base = 1
		}
	}
}

// see is protected.Memory.See.
func (c *Caller) see(now reading) {
	if c.Mem == 0 {
		c.Mem = now
	}
}

func (c *Caller) rollback() { c.Tx, c.Wrote = noTx, false }

// fail is the end of an attempt that was rolled back.
func (c *Caller) fail() { c.PC, c.Ended = closing, rolledBack }

// failIfLapsed ends an attempt whose next statement is refused.
func (s *State) failIfLapsed(cfg *Config, i int) bool {
	if !s.lapsed(cfg, i) {
		return false
	}
	s.Callers[i].rollback()
	s.Callers[i].fail()
	return true
}

func sendWrite(cfg *Config, s *State, i int) bool {
	if !s.ready(i) {
		return false
	}
	if !s.failIfLapsed(cfg, i) {
		s.Callers[i].PC = writing
	}
	return true
}

// locked reports whether a transaction other than caller i's has written the row.
func (s *State) locked(i int) bool {
	for j := range s.Callers {
		if j != i && s.Callers[j].Wrote {
			return true
		}
	}
	return false
}

func answerWrite(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	elsewhere := cfg.Postgres && cfg.Update && s.Row.Version != c.Base // it sees no row to wait for
	if s.locked(i) && !elsewhere {
		return false
	}
	c.Reached = true
	fits := s.Row.Version == c.Base
	if cfg.Update && cfg.Weak.NoVersionCompare || !cfg.Update && cfg.Weak.NoUniqueIndex {
		fits = true
	}
	switch now := read(s.Row.Version); {
	case fits:
		c.Wrote, c.Known, c.PC = true, true, written
		if cfg.request() && !cfg.Weak.ClaimLast {
			c.PC = working
		}
		if !cfg.Weak.ForgetWrites {
			c.see(read(c.Base))
		}
	case cfg.Postgres:
		c.PC = refused
	default:
		plain := c.Snap
		if cfg.Changed {
			plain = now
		}
		c.see(plain)
		c.compare(cfg, plain, now)
	}
	return true
}

// compare collects the evidence for a write that was refused, and rolls back.
func (c *Caller) compare(cfg *Config, plain, now reading) {
	changed := plain.changedTo(now, cfg.Update) || c.Mem.changedTo(now, cfg.Update)
	if cfg.request() && now <= 1 && !cfg.Weak.PurgeIsChange { // it was purged
		changed = false
	}
	c.Found = evidence{
		There:    now > 1,
		Changed:  changed && !cfg.Weak.NoComparison,
		Expected: cfg.Update && now > 1 && now == read(c.Base),
	}
	c.rollback()
	c.PC = conflicted
}

func reread(cfg *Config, s *State, i int) bool {
	now := read(s.Row.Version)
	s.Callers[i].compare(cfg, now, now)
	return true
}

func cancelWrite(cfg *Config, s *State, i int) bool { return s.failIfLapsed(cfg, i) }

func lookAfterDeadlock(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if s.Row.Version == 0 {
		c.see(read(0))
		c.Known = true
	}
	s.again(cfg, i)
	return true
}

// again runs the operation again, under the same lease.
func (s *State) again(cfg *Config, i int) {
	c := &s.Callers[i]
	if s.lapsed(cfg, i) {
		c.fail()
		return
	}
	c.Tries++
	c.PC, c.Snap, c.Base = granted, 0, 0
	s.unmake(i)
}

func sendCommit(cfg *Config, s *State, i int) bool {
	if !s.failIfLapsed(cfg, i) {
		s.Callers[i].PC, s.Callers[i].Tx = committing, commits
	}
	return true
}

func executeCommit(cfg *Config, s *State, i int) bool {
	c, r := &s.Callers[i], &s.Row
	if c.Tx != commits {
		return false
	}
	c.rollback()
	c.Took++
	s.commitCrew(cfg, i)
	if r.Based&(1<<c.Base) != 0 {
		r.Twice |= 1 << c.Base
	}
	r.Based |= 1 << c.Base
	r.Version = c.Base + c.versions(cfg)
	if !cfg.Update {
		r.Key = owner(i)
	}
	if cfg.Stamp {
		r.Stamp = owner(i)
	}
	if cfg.request() {
		s.storeRequest(cfg, i)
	}
	if !cfg.Apart { // a lock excludes nobody who has another
		s.tookEffect(i, true)
	}
	if cfg.Budget.Crash == 0 {
		s.Disk = s.Row
	} else {
		s.Unsafe, s.Log[i] = s.Unsafe|1<<i, s.Row
	}
	return true
}

// tookEffect notes for all but caller i that another's commit took effect. compared says
// that the commit changed what a refused write compares.
func (s *State) tookEffect(i int, compared bool) {
	for j := range s.Callers {
		c := &s.Callers[j]
		if j == i || !c.holds() {
			continue
		}
		c.Foreign = true
		stranger := i == callers
		switch {
		case c.PC > refused || !compared: // it has written, or is done
		case c.Known:
			c.Later = true
		case c.PC == deadlocked:
			c.Missed = c.Missed || stranger
		case c.PC > granted && c.Snap != 0:
			c.Fresh, c.Stranger = true, c.Stranger || stranger
		}
	}
}

func answerCommit(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if c.Tx != noTx || c.Took == 0 || s.Unsafe&(1<<i) != 0 {
		return false
	}
	s.answered(cfg, i)
	return true
}

// answered is a COMMIT that is known to have taken effect.
func (s *State) answered(cfg *Config, i int) {
	c := &s.Callers[i]
	c.PC, c.Ended = closing, committed
	if cfg.Serves >= ByOnce {
		c.Got = owner(i)
	}
}

func dropSession(_ *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if c.Tx != dropped {
		return false
	}
	c.rollback()
	return true
}

// endSession ends the session, and waits until it has gone: what it has committed is
// durable then.
func endSession(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	switch {
	case cfg.Weak.LeaveSession:
	case s.Unsafe&(1<<i) != 0 && !cfg.Weak.TrustVisible:
		return false
	default:
		c.rollback()
	}
	c.PC = resolving
	return true
}

// resolve is Tx.findOut.
func resolve(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	byNumber := cfg.Postgres && !c.Broken
	if !byNumber && (s.locked(i) && !cfg.Keyed || c.Wrote) {
		return false // it waits for the row; one that is looked for by its own number is nobody else's
	}
	found, held := s.proof(cfg, i), true
	if byNumber {
		found, held = rolledBack, false
		if c.Took > 0 {
			found = committed
		}
	}
	switch {
	case found == undecided:
		c.PC = giving
	case found == committed:
		s.answered(cfg, i)
	case held && !cfg.request(): // nobody deletes a claim whose COMMIT is looked for
		c.PC = doubting
	default:
		c.fail()
	}
	return true
}

// proof is journal.Image.Proof: what the row says of the commit.
func (s *State) proof(cfg *Config, i int) outcome {
	c, r := &s.Callers[i], s.Row
	if r.Version == 0 {
		if cfg.Update {
			return undecided
		}
		return rolledBack
	}
	if cfg.Weak.TrustEqualValues && r.Version == c.Base+1 || cfg.Stamp && r.Stamp == owner(i) {
		return committed
	}
	another := cfg.Stamp && r.Stamp != 0 && r.Version == c.Base+c.versions(cfg)
	switch generates := !cfg.Postgres && !c.Broken; {
	case cfg.Update && (r.Version == c.Base || another):
		return rolledBack
	case cfg.Update:
	case cfg.Keyed && r.Key != owner(i):
		return rolledBack
	case cfg.Keyed && generates:
		return committed
	case another:
		return rolledBack
	}
	return undecided
}

func giveUp(_ *Config, s *State, i int) bool {
	s.Callers[i].PC = giving
	return true
}

// flush leaves out the commits behind that of caller i.
func flush(_ *Config, s *State, i int) bool {
	if s.Unsafe&(1<<i) == 0 {
		return false
	}
	s.Disk = s.Log[i]
	for j := range s.Log {
		if s.Log[j].Version <= s.Disk.Version {
			s.Unsafe, s.Log[j] = s.Unsafe&^(1<<j), Row{}
		}
	}
	return true
}
