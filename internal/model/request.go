package model

// A request: guard/claim.go, guard/once.go, internal/claim and internal/dbtx/claim.go. The
// row is its claim, whose stamp is the attempt. The answer of Once is stored with it.

var requestActions = []action{
	{asking, "%s is granted another key", acquireOther},
	{asking, "%s finds a mark that the request is done", findMark},
	{marked, "%s reads the claim, as there is a mark", readMarked},
	{writing, "%s waits no longer for the transaction that has the claim", leaveClaim},
	{working, "%s runs the operation and stores its answer", work},
	{working, "the operation of %s inserts a row that another request has inserted", meetRow},
	{anywhere, "the mark expires", expireMark},
	{anywhere, "the Purger deletes the answer", purgeAnswer},
	{anywhere, "the Purger deletes the claim", purgeClaim},
	{anywhere, "the database is restored from before the request", restore},
}

// elsewhere reports whether caller i serves the request under another key.
func (cfg *Config) elsewhere(i int) bool { return cfg.Apart && cfg.Callers[i] == 1 }

func acquireOther(cfg *Config, s *State, i int) bool {
	if !cfg.elsewhere(i) {
		return false
	}
	s.Grants[i] = Grant{State: held, Local: true}
	s.Callers[i].Grant, s.Callers[i].PC = owner(i), granted
	return true
}

// foreign reports whether the claim was made under another key than caller i's.
func (s *State) foreign(cfg *Config, i int) bool {
	return cfg.Apart && s.Row.Version > 0 && cfg.elsewhere(int(s.Row.Stamp)-1) != cfg.elsewhere(i)
}

// marked reports whether a mark keeps caller i from the lock, or it has another key.
func (s *State) marked(cfg *Config, i int) bool {
	return cfg.elsewhere(i) || cfg.Marks && s.Mark != 0 && !s.Callers[i].Unmarked
}

// marks reports whether caller i acquires the lock unless there is a mark: such a lock is not
// handed over in memory, as whoever comes next has to see the mark.
func (s *State) marks(cfg *Config, i int) bool { return cfg.Marks && !s.Callers[i].Unmarked }

// mark is what ReleaseMarked does beside the release.
func (s *State) mark(cfg *Config, i int) {
	c := &s.Callers[i]
	done := c.Ended == committed || c.Ended == refusedWrite && c.Found.Verdict == saysRepeat
	if done && s.marks(cfg, i) {
		s.Mark = owner(i)
	}
}

func findMark(cfg *Config, s *State, i int) bool {
	if cfg.elsewhere(i) || !s.marked(cfg, i) || s.Node != up {
		return false
	}
	s.Callers[i].PC = marked
	s.leave(cfg, i)
	return true
}

// readMarked looks for the claim. A mark is a hint: without a row it is ignored.
func readMarked(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if s.Row.Version == 0 && !cfg.Weak.TrustMark {
		c.Unmarked = true
		s.enter(cfg, i)
		return true
	}
	r := duplicate
	if c.Got = s.Row.answer(); c.Got != 0 {
		r = replayed
	}
	c.Res, c.PC = r, returning
	return true
}

// answer returns whose answer a repeat gets.
func (r *Row) answer() uint8 {
	if r.Purged {
		return 0
	}
	return r.Answer
}

// leaveClaim is the end of the wait that the database bounds.
func leaveClaim(cfg *Config, s *State, i int) bool {
	if !cfg.request() || !s.locked(i) {
		return false
	}
	c := &s.Callers[i]
	c.rollback()
	c.PC, c.Ended = closing, gaveUp
	return true
}

// work is answering.work.
func work(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	switch {
	case s.failIfLapsed(cfg, i):
	case cfg.Weak.ClaimLast && !c.Wrote:
		c.PC = writing
	case cfg.Serves == Declined && !c.Refusing && !cfg.Weak.KeepRefused:
		c.rollback()
		c.Refusing = true
		c.PC, c.Snap, c.Base = granted, 0, 0
	default:
		c.PC = written
	}
	return true
}

// meetRow is a conflict of the operation on a row of its own, which says nothing of the
// request.
func meetRow(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if c.Refusing || !s.spend(cfg, &s.Left.Meet) {
		return false
	}
	c.rollback()
	c.PC, c.Ended = closing, metRow
	return true
}

// storeRequest is the commit of a claim.
func (s *State) storeRequest(cfg *Config, i int) {
	r := &s.Row
	if !s.Callers[i].Refusing {
		r.Effects++
	}
	if r.Answer, r.Purged = owner(i), false; cfg.Serves == ByFor {
		r.Answer = 0
	}
	for j := range s.Callers {
		if pc := s.Callers[j].PC; j != i && pc != idle && pc != returned && pc != dead {
			s.Callers[j].Stored = true
		}
	}
}

// findRecord reads the claim that was in the way of caller i's. If that has been purged,
// the attempt is made again.
func (s *State) findRecord(cfg *Config, i int) (again bool) {
	c := &s.Callers[i]
	c.Got = 0
	if s.Row.Version > 0 {
		c.Got = s.Row.answer()
		return false
	}
	if v := c.Found.Verdict; v == saysOverlap || v == saysLost {
		return false
	}
	s.again(cfg, i)
	return true
}

func expireMark(_ *Config, s *State, i int) bool {
	if i != 0 || s.Mark == 0 {
		return false
	}
	s.Mark = 0
	return true
}

func purgeAnswer(cfg *Config, s *State, i int) bool {
	if i != 0 || s.Row.answer() == 0 || s.sought() || !s.spend(cfg, &s.Left.Purge) {
		return false
	}
	s.Row.Purged = true
	s.Disk = s.Row
	return true
}

func purgeClaim(_ *Config, s *State, i int) bool {
	if i != 0 || !s.Row.Purged || s.locked(callers) || s.sought() {
		return false
	}
	s.forgetRequest()
	return true
}

// sought reports whether the claim is of a COMMIT without an answer: requests are kept for
// much longer than that is looked for.
func (s *State) sought() bool {
	for i := range s.Callers {
		if pc := s.Callers[i].PC; pc == committing || pc == unknown || pc == resolving {
			return true
		}
	}
	return false
}

func restore(cfg *Config, s *State, i int) bool {
	if i != 0 || s.Row.Version == 0 || s.locked(callers) || s.sought() || !s.spend(cfg, &s.Left.Restore) {
		return false
	}
	s.forgetRequest()
	return true
}

// forgetRequest is the end of what is promised for a request: it takes effect again.
func (s *State) forgetRequest() {
	s.Row = Row{Deleted: true}
	s.Disk = s.Row
	for i := range s.Callers {
		s.Callers[i].Got = 0
	}
}
