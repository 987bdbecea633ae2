package model

// A crew: guard/combine.go, line.go, crew.go, member.go and round.go. The callers of one process who
// wait for the lock share the transaction of the one who gets it. All change the one row;
// those who insert it are twins, of whom one inserts.

var crewActions = []action{
	{granted, "%s closes its crew", closeCrew},
	{loaded, "%s takes a caller into its crew who came after the begin", closeLate},
	{aboard, "%s makes its change", makeChange},
	{aboard, "the change of %s fails", failChange},
	{aboard, "the turn of %s does not come in time", missTurn},
	{aboard, "the turn of %s lasts for too long, and it runs alone", overrun},
	{loaded, "%s finds its row as its crew begins, which falls apart", findTwin},
	{granted, "the connection of %s breaks before its first read is answered", breakRead},
	{aboard, "%s inserts the row of another of its crew, and runs alone", leaveTwin},
}

// breakRead is a transaction that has begun, and has no snapshot yet: on PostgreSQL. Only to a crew is
// it another thing than one that has not begun.
func breakRead(cfg *Config, s *State, i int) bool {
	if !cfg.Crew || !cfg.Postgres || !breakBegin(cfg, s, i) {
		return false
	}
	s.Callers[i].Snap = read(s.Row.Version)
	return true
}

// gathers reports whether caller i has yet to close its crew.
func (s *State) gathers(cfg *Config, i int) bool {
	c := &s.Callers[i]
	return cfg.Crew && !c.Closed && !c.Apart && !s.grant(i).Local
}

func closeCrew(cfg *Config, s *State, i int) bool {
	if !s.gathers(cfg, i) {
		return false
	}
	s.Callers[i].Closed = true
	s.gather(cfg, i)
	return true
}

func closeLate(cfg *Config, s *State, i int) bool { return cfg.Weak.LateMember && s.gather(cfg, i) }

// gather makes those who wait for the lock members of caller i's crew.
func (s *State) gather(cfg *Config, i int) (some bool) {
	for j := range s.Callers {
		if c := &s.Callers[j]; cfg.Callers[j] == cfg.Callers[i] && c.PC == queued && !c.Apart {
			c.PC, c.Leader, some = aboard, owner(i), true
		}
	}
	s.Callers[i].Shares = s.Callers[i].Shares || some
	return some
}

// turn returns the leader of a member whose turn may come, or nil.
func (s *State) turn(j int) *Caller {
	c := &s.Callers[j]
	if leader := &s.Callers[c.Leader-1]; leader.PC == loaded && !c.Made {
		return leader
	}
	return nil
}

func makeChange(cfg *Config, s *State, j int) bool {
	leader := s.turn(j)
	if leader == nil || !cfg.Update && !cfg.Weak.TwinJoins {
		return false
	}
	s.Callers[j].Made = true
	leader.Crew |= 1 << j
	return true
}

func failChange(cfg *Config, s *State, j int) bool {
	if s.turn(j) == nil || !cfg.Update || !s.spend(cfg, &s.Left.Fail) {
		return false
	}
	s.Callers[j].Made, s.Callers[j].Failed = true, true
	return true
}

// missTurn gives a member back to the line, which it leads then.
func missTurn(cfg *Config, s *State, j int) bool {
	if s.turn(j) == nil || !cfg.Update {
		return false
	}
	s.Callers[j].begin(false)
	return true
}

// overrun is a change that is undone.
func overrun(cfg *Config, s *State, j int) bool {
	leader := &s.Callers[max(s.Callers[j].Leader, 1)-1]
	if s.Callers[j].Made || !cfg.Update || leader.PC != loaded && leader.PC != closing {
		return false
	}
	s.Callers[j].begin(true)
	return true
}

func leaveTwin(cfg *Config, s *State, j int) bool {
	if s.turn(j) == nil || cfg.Update || cfg.Weak.TwinJoins {
		return false
	}
	s.Callers[j].begin(true)
	return true
}

// findTwin is a crew whose row is there when its transaction begins.
func findTwin(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if !c.Shares || cfg.Update || c.Snap <= 1 {
		return false
	}
	c.rollback()
	c.fail()
	return true
}

// begin has a caller acquire the lock for itself, or for the next crew. What the run of its crew
// has left of a leader is a session that the database has yet to roll back.
func (c *Caller) begin(apart bool) {
	*c = Caller{Tx: c.Tx, Wrote: c.Wrote, Apart: apart}
}

// members are those who are in caller i's crew now.
func (s *State) members(i int) (all []int) {
	for j := range s.Callers {
		if c := &s.Callers[j]; c.PC == aboard && c.Leader == owner(i) {
			all = append(all, j)
		}
	}
	return all
}

// ready reports whether the changes of caller i's crew are made.
func (s *State) ready(i int) bool {
	for _, j := range s.members(i) {
		if !s.Callers[j].Made {
			return false
		}
	}
	return true
}

// unmake begins another round of caller i's crew.
func (s *State) unmake(i int) {
	s.Callers[i].Crew = 0
	for _, j := range s.members(i) {
		s.Callers[j].Made, s.Callers[j].Failed = false, false
	}
}

// changes returns how many versions a commit of the caller makes.
func (c *Caller) changes() uint8 {
	n := uint8(1)
	for crew := c.Crew; crew != 0; crew &= crew - 1 {
		n++
	}
	return n
}

// counted is crew.told: for how many callers an event of caller i stands.
func (s *State) counted(cfg *Config, i int) uint8 {
	c := &s.Callers[i]
	switch {
	case cfg.Weak.CountOne:
		return 1
	case c.Ended == committed:
		return c.changes()
	}
	n := uint8(1)
	for range s.members(i) {
		n++
	}
	return n
}

// scatters is crew.apart: what has ended the transaction may be the fault of one member, unless it
// had not begun. A refused insert is of one of them.
func (s *State) scatters(cfg *Config, i int) bool {
	switch c := &s.Callers[i]; c.Ended {
	case rolledBack:
		return cfg.Crew && c.Snap != 0 && !s.lapsed(cfg, i)
	case refusedWrite:
		return c.Shares && !cfg.Update
	}
	return false
}

// deliver has the members of those who are about to return do so, too, or all of the crew run alone.
func (s *State) deliver(cfg *Config) {
	if !cfg.Crew {
		return
	}
	for i := range s.Callers {
		leader := &s.Callers[i]
		if leader.PC != returning && (!cfg.Weak.AnswerBeforeCommit || leader.PC != written) {
			continue
		}
		for _, j := range s.members(i) {
			m := &s.Callers[j]
			if leader.Scatters {
				m.begin(true)
				continue
			}
			m.PC, m.Res, m.Snap = returning, leader.Res, leader.Snap
			switch {
			case leader.Res == done && m.Failed:
				m.Res = failed
			case leader.PC == written:
				m.Res = done
			}
		}
		if leader.Scatters && leader.Shares {
			leader.begin(true)
		}
	}
}

// versions returns by how many a commit of the caller raises the version.
func (c *Caller) versions(cfg *Config) uint8 {
	if cfg.Weak.OneVersion || !cfg.Update {
		return 1
	}
	return c.changes()
}

// commitCrew is the commit of the changes that caller i has taken along, each based on the
// version that the one before makes.
func (s *State) commitCrew(cfg *Config, i int) {
	c, base := &s.Callers[i], s.Callers[i].Base
	if !cfg.Update {
		return
	}
	for j := range s.Callers {
		if c.Crew&(1<<j) == 0 {
			continue
		}
		base++
		s.Callers[j].Took++
		if s.Row.Based&(1<<base) != 0 {
			s.Row.Twice |= 1 << base
		}
		s.Row.Based |= 1 << base
	}
}
