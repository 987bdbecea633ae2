package model

// What fails. Each costs one of a budget.

var faultActions = []action{
	{anywhere, "the lock of %s is lost: its node fails before a replica has it", loseLock},
	{anywhere, "%s is paused past the deadline of its lock", lapse},
	{anywhere, "the process of %s is killed", kill},
	{granted, "the database falls silent, and does not answer the BEGIN of %s", hang},
	{granted, "the connection of %s breaks before its BEGIN is answered", breakBegin},
	{hanging, "the time of %s ends", leaveSilent},
	{writing, "the database ends the transaction of %s: deadlock", deadlock},
	{working, "the database ends the transaction of %s: deadlock in a later statement", deadlock},
	{written, "the database ends the transaction of %s: deadlock in a later statement", deadlock},
	{committing, "the database refuses the COMMIT of %s: deadlock", deadlock},
	{committing, "the connection of %s breaks, and its COMMIT is lost", cutBefore},
	{committing, "the connection of %s breaks, and the answer to its COMMIT is lost", cutAfter},
	{marked, "the connection of %s breaks as it reads the claim", breakMarked},
	{looked, "the connection of %s breaks", breakOff},
	{loaded, "the connection of %s breaks", breakOff},
	{writing, "the connection of %s breaks", breakOff},
	{working, "the connection of %s breaks", breakOff},
	{written, "the connection of %s breaks", breakOff},
	{anywhere, "the database crashes and starts again", crash},
	{anywhere, "somebody who never asked for the lock writes the row", writeWithoutLock},
	{anywhere, "somebody who never asked for the lock deletes the row", deleteWithoutLock},
	{anywhere, "somebody who never asked for the lock deletes the row and inserts it again", replaceWithoutLock},
}

func loseLock(cfg *Config, s *State, i int) bool {
	if s.Holder != owner(i) || !s.spend(cfg, &s.Left.Lose) {
		return false
	}
	s.Holder, s.Grants[i].Gone = 0, true
	return true
}

// lapse needs no budget while no renewal is answered.
func lapse(cfg *Config, s *State, i int) bool {
	g := &s.Grants[i]
	if g.State != held || g.Past || g.Local || s.proc(cfg, i).Dead || s.Node == up && !s.spend(cfg, &s.Left.Lapse) {
		return false
	}
	g.Past, g.Gone = true, true
	return true
}

// kill ends the process of caller i, the first of its callers, while one of them is at work.
func kill(cfg *Config, s *State, i int) bool {
	if i != s.first(cfg, i) || !s.atWork(cfg, i) || !s.spend(cfg, &s.Left.Kill) {
		return false
	}
	*s.proc(cfg, i) = Process{Dead: true}
	for j := range s.Callers {
		if cfg.Callers[j] != cfg.Callers[i] {
			continue
		}
		s.Grants[j].Shut = false
		c := &s.Callers[j]
		if c.PC == returned {
			continue
		}
		c.DiedAt, c.PC = c.PC, dead
		if c.Tx == active {
			c.Tx = dropped
		}
	}
	return true
}

func (s *State) atWork(cfg *Config, i int) bool {
	for j := range s.Callers {
		if pc := s.Callers[j].PC; cfg.Callers[j] == cfg.Callers[i] && pc != idle && pc != returned && pc != dead {
			return true
		}
	}
	return false
}

// first returns the first caller of the process of caller i.
func (s *State) first(cfg *Config, i int) int {
	for j := range s.Callers {
		if cfg.Callers[j] == cfg.Callers[i] {
			return j
		}
	}
	return i
}

// hang is a BEGIN that is never answered.
func hang(cfg *Config, s *State, i int) bool {
	if s.gathers(cfg, i) || !s.spend(cfg, &s.Left.Hang) {
		return false
	}
	s.Callers[i].PC = hanging
	return true
}

// breakBegin is a transaction that the server rolls back before anything is asked of it.
func breakBegin(cfg *Config, s *State, i int) bool {
	if s.gathers(cfg, i) || !s.spend(cfg, &s.Left.Cut) {
		return false
	}
	s.Callers[i].fail()
	return true
}

func leaveSilent(cfg *Config, s *State, i int) bool {
	if cfg.Weak.LeaderUnwatched && len(s.members(i)) > 0 {
		return false
	}
	s.Callers[i].fail()
	return true
}

func deadlock(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if c.Tx == noTx || !s.spend(cfg, &s.Left.Deadlock) {
		return false // the COMMIT has been executed
	}
	insert := c.PC == writing && !cfg.Update && !cfg.Postgres
	c.rollback()
	if !c.Known {
		c.Missed, c.Fresh, c.Stranger = c.Stranger, false, false
	}
	if insert {
		c.PC = deadlocked
		return true
	}
	if cfg.request() && c.PC > refused && !c.Refusing && c.Tries >= cfg.Retries { // the operation has begun, and only Retries runs it again
		c.fail()
		return true
	}
	s.again(cfg, i)
	return true
}

func cutBefore(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if c.Tx != commits || !s.spend(cfg, &s.Left.Cut) {
		return false
	}
	c.Tx = dropped
	c.cut(cfg)
	return true
}

func cutAfter(cfg *Config, s *State, i int) bool {
	if !s.spend(cfg, &s.Left.Cut) {
		return false
	}
	s.Callers[i].cut(cfg)
	return true
}

// cut is a COMMIT without an answer.
func (c *Caller) cut(cfg *Config) {
	c.Unanswered, c.PC = true, unknown
	if cfg.Weak.CutIsRolledBack {
		c.fail()
	}
}

func breakOff(cfg *Config, s *State, i int) bool {
	if !s.spend(cfg, &s.Left.Cut) {
		return false
	}
	s.Callers[i].Tx = dropped
	s.Callers[i].fail()
	return true
}

// breakMarked is a caller who has no answer from the database, and no lock.
func breakMarked(cfg *Config, s *State, i int) bool {
	if !s.spend(cfg, &s.Left.Cut) {
		return false
	}
	s.Callers[i].Res, s.Callers[i].PC = failed, returning
	return true
}

// crash ends all transactions, and takes what is not on the disk.
func crash(cfg *Config, s *State, i int) bool {
	if i != 0 || !s.spend(cfg, &s.Left.Crash) {
		return false
	}
	for j := range s.Callers {
		c := &s.Callers[j]
		if s.Unsafe&(1<<j) != 0 {
			c.Took--
		}
		switch {
		case c.PC == committing:
			c.cut(cfg)
			c.Broken = true
		case c.PC == unknown, c.PC == resolving:
			c.Broken = true
		case c.Tx == active:
			c.fail()
		}
		c.rollback()
	}
	s.Row, s.Unsafe, s.Log = s.Disk, 0, [callers]Row{}
	return true
}

func writeWithoutLock(cfg *Config, s *State, i int) bool {
	if i != 0 || s.locked(callers) || !s.spend(cfg, &s.Left.Write) {
		return false
	}
	if s.Row.Version == 0 {
		s.Row.Key = callers + 1
	}
	s.Row.Version++
	s.Disk = s.Row
	s.tookEffect(callers, cfg.Update || s.Row.Version == 1)
	return true
}

func deleteWithoutLock(cfg *Config, s *State, i int) bool {
	if i != 0 || s.Row.Version == 0 || s.locked(callers) || !s.spend(cfg, &s.Left.Delete) {
		return false
	}
	s.Row = Row{Deleted: true}
	s.Disk = s.Row
	s.tookEffect(callers, false)
	return true
}

func replaceWithoutLock(cfg *Config, s *State, i int) bool {
	if i != 0 || s.Row.Version < 2 || s.locked(callers) || !s.spend(cfg, &s.Left.Replace) {
		return false
	}
	s.Row.Version, s.Row.Key, s.Row.Stamp, s.Row.Replaced = 1, callers+1, 0, true
	s.Disk = s.Row
	s.tookEffect(callers, false)
	return true
}
