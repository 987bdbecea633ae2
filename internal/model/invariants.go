package model

// An invariant is a promise of docs/guarantees.md. It reports each place where a state
// breaks it: two callers, or one twice.
type invariant struct {
	ID, Says string

	always  func(cfg *Config, s *State, report func(early, late int))
	returns func(cfg *Config, s *State, i int) bool // broken by a Do that is about to return
	ends    func(cfg *Config, s *State, report func(early, late int))
}

var invariants = []invariant{
	{ID: "I1", Says: "An insert commits once.", always: insertedTwice},
	{ID: "I2", Says: "Each version of the row is the base of one commit.", always: updatedTwice},
	{ID: "I3", Says: "Nil means that the caller's own commit took effect, if it did not swallow a conflict, and any error but ErrUnknown that it did not and will not.", always: wrongResult},
	{ID: "I4", Says: "After ErrUnknown nobody of the process has the key before the deadline of the lock.", always: openAfterUnknown},
	{ID: "I5", Says: "An event tells of two holders at a time who both reached their write, and of a write that another's commit refused under the lease.", returns: overlapTakenForRepeat, ends: untoldOverlap},
	{ID: "I6", Says: "An event has a reason: overlap, another's commit under the lease; lost, a lock that was gone; unknown commit, a COMMIT without an answer. It names the key of that row, or lock.", returns: falseAlarm, always: falseName},
	{ID: "I7", Says: "A Do publishes one event at most. That of a crew counts those who return the same.", returns: miscounted},
	{ID: "I8", Says: "Nobody is refused for a lock of its own process that nobody uses.", returns: refusedForNothing},
	{ID: "I9", Says: "An outage has one begin and one end.", always: flappingOutage, ends: endlessOutage},
	{ID: "I10", Says: "An event whose row survives is published, and stored once by the monitor.", ends: lostEvent},
	{ID: "I11", Says: "ErrDuplicate, ErrStale and a stored answer mean that another's commit preceded the snapshot of a caller with the lock; or its end, if that was made without the lock or asked without it.", returns: repeatOfNothing},
	{ID: "I12", Says: "No connection goes back to the pool inside a transaction.", returns: pooledOpen},
	{ID: "I13", Says: "Two callers have grants at a time only if the engine lost the lock of the first, or its deadline had passed.", always: grantedTwice},
	{ID: "I14", Says: "A call that waits for keys ends.", ends: waitsForever},
	{ID: "I15", Says: "While a request is kept it has one effect at most, none if it was refused, and each answer that was given is the stored one.", always: answeredApart},
	{ID: "I16", Says: "The operation of a request never runs twice at a time.", always: runsTwice},
	{ID: "I17", Says: "The snapshot of a member is not older than its call.", returns: func(_ *Config, s *State, i int) bool { c := &s.Callers[i]; return c.Snap != 0 && c.Called > c.Snap }},
	{ID: "I18", Says: "An operation runs with the locks on all of its keys, and leaves none behind.", always: holdsSome},
	{ID: "I19", Says: "Nobody with a sound lock is told of a conflict of the business with a row that another's commit under that lock has made, and that is there.", returns: blamedForAnother},
	{ID: "I20", Says: "ErrUnavailable needs an engine that refused, or did not answer in time.", returns: func(_ *Config, s *State, i int) bool { c := &s.Callers[i]; return c.Res == unavailable && !c.InVain }},
}

func insertedTwice(_ *Config, s *State, report func(early, late int)) {
	if s.Row.Twice&1 != 0 {
		report(0, 0)
	}
}

func updatedTwice(_ *Config, s *State, report func(early, late int)) {
	if s.Row.Twice&^1 != 0 {
		report(0, 0)
	}
	for k := range s.Several.Rows {
		if s.Several.Rows[k].Twice != 0 {
			report(0, 0)
		}
	}
}

func wrongResult(cfg *Config, s *State, report func(early, late int)) {
	if cfg.several() {
		wrongResultOfSeveral(s, report)
		return
	}
	for i := range s.Callers {
		c := &s.Callers[i]
		if c.PC == returned && (c.Res == done && c.Took != 1 && !c.Swallowed || c.Res.clean() && c.Took != 0) {
			report(i, i)
		}
	}
}

// wrongResultOfSeveral is wrongResult of calls with several keys.
func wrongResultOfSeveral(s *State, report func(early, late int)) {
	for i := range s.Several.Calls {
		if c := &s.Several.Calls[i]; c.PC == returned && (c.Res == done && c.Took != 1 || c.Res.clean() && c.Took != 0) {
			report(i, i)
		}
	}
}

func openAfterUnknown(cfg *Config, s *State, report func(early, late int)) {
	for i := range s.Grants {
		if !s.Grants[i].Shut {
			continue
		}
		for j := range s.Callers {
			if c := &s.Callers[j]; cfg.Callers[j] == cfg.Callers[i] && c.holds() && s.grant(j).State == held {
				report(i, j)
			}
		}
	}
}

// overlapTakenForRepeat: what refused the write was committed after the caller could
// know how the row was under its lease.
func overlapTakenForRepeat(_ *Config, s *State, i int) bool {
	c := &s.Callers[i]
	return (c.Res == duplicate || c.Res == replayed || c.Res == stale || c.Swallowed) && !c.Alarm && c.Grant != 0 && !s.grant(i).Local && (c.Later || c.Fresh || c.Missed)
}

func untoldOverlap(cfg *Config, s *State, report func(early, late int)) {
	if cfg.several() {
		untoldOfSeveral(s, report)
		return
	}
	for a := range s.Callers {
		for b := range s.Callers {
			early, late := &s.Callers[a], &s.Callers[b]
			if early.Met&(1<<b) != 0 && early.Reached && late.Reached && !s.told(early.Grant) && !s.told(late.Grant) {
				report(a, b)
			}
		}
	}
}

// told reports whether one of those who had the grant has published an alarm.
func (s *State) told(owner uint8) bool {
	return s.any(owner, func(c *Caller) bool { return c.Alarm })
}

// any reports whether f holds for one of those who had the grant.
func (s *State) any(owner uint8, f func(*Caller) bool) bool {
	for i := range s.Callers {
		if c := &s.Callers[i]; c.Grant == owner && f(c) {
			return true
		}
	}
	return false
}

func falseAlarm(_ *Config, s *State, i int) bool {
	switch c := &s.Callers[i]; c.Said {
	case saysOverlap:
		return !c.Foreign
	case saysLost:
		return !s.grant(i).Gone
	case saysUnknown:
		return !c.Unanswered
	}
	return false
}

// refusedForNothing: the lock that was in the way is of a call that has ended. One whose
// outcome is unknown keeps its lock until it expires.
func refusedForNothing(cfg *Config, s *State, i int) bool {
	h := s.Holder
	return s.Callers[i].Res == busy && h != 0 && cfg.Callers[h-1] == cfg.Callers[i] &&
		s.Grants[h-1].State != abandoned && !s.any(h, (*Caller).holds)
}

func blamedForAnother(_ *Config, s *State, i int) bool {
	c := &s.Callers[i]
	return c.Res == business && c.Found.There && (c.Later || c.Fresh) && !s.grant(i).Local && !s.grant(i).Gone
}

func flappingOutage(_ *Config, s *State, report func(early, late int)) {
	for i := range s.Procs {
		p := &s.Procs[i]
		if p.Begins > s.Outages || p.Ends > p.Begins {
			report(i, i)
		}
	}
}

func endlessOutage(_ *Config, s *State, report func(early, late int)) {
	for i := range s.Procs {
		if p := &s.Procs[i]; p.Begins != p.Ends {
			report(i, i)
		}
	}
}

func lostEvent(_ *Config, s *State, report func(early, late int)) {
	for e := range events {
		if p := &s.Path; p.Stored&^p.Lost&(1<<e) != 0 && p.Kept[e] != 1 {
			report(e, e)
		}
	}
}

func repeatOfNothing(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	switch {
	case c.Alarm || c.Grant != 0 && s.grant(i).Local:
		return false
	case c.Grant == 0 || cfg.Apart:
		return (c.Res == duplicate || c.Res == replayed) && !c.Stored
	case c.Res == duplicate, c.Res == replayed:
		return c.Snap <= 1
	}
	return c.Res == stale && c.Snap == read(c.Base)
}

// pooledOpen: a connection goes to the pool unless it broke, or did not answer COMMIT.
func pooledOpen(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if cfg.Weak.PoolUnknown {
		return c.Tx != noTx
	}
	return (c.Tx == active || c.Tx == commits) && !c.Unanswered
}

func grantedTwice(_ *Config, s *State, report func(early, late int)) {
	for i := range s.Several.Calls {
		c := &s.Several.Calls[i]
		if held := c.Met & c.Held &^ c.Gone; held != 0 && c.PC < closing {
			report(i, i)
		}
	}
	for i := range s.Callers {
		if c := &s.Callers[i]; c.Met != 0 && c.holds() && !s.grant(i).Gone {
			report(i, i)
		}
	}
}

func answeredApart(cfg *Config, s *State, report func(early, late int)) {
	if s.Row.Effects > 1 || cfg.Serves == Declined && s.Row.Effects > 0 {
		report(0, 0)
	}
	for i := range s.Callers {
		if c := &s.Callers[i]; c.PC == returned && c.Got != 0 && c.Got != s.Row.Answer {
			report(i, i)
		}
	}
}

func runsTwice(_ *Config, s *State, report func(early, late int)) {
	for i := range s.Callers {
		for j := range i {
			if c, d := &s.Callers[i], &s.Callers[j]; c.PC == working && d.PC == working && !c.Refusing && !d.Refusing {
				report(j, i)
			}
		}
	}
}

func miscounted(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	if c.Events > 1 || !cfg.Crew || c.Events == 0 || c.Scatters {
		return c.Events > 1
	}
	same := uint8(0)
	for j := range s.Callers {
		if m := &s.Callers[j]; (j == i || m.PC == returning && m.Leader == owner(i)) && m.Res == c.Res {
			same++
		}
	}
	return c.Count != same
}

// untoldOfSeveral is untoldOverlap for each key. Who died is excused as with one key.
func untoldOfSeveral(s *State, report func(early, late int)) {
	for k := range keys {
		for i := range s.Several.Calls {
			c, d := &s.Several.Calls[i], &s.Several.Calls[1-i]
			met := c.Met & c.Reached & d.Reached & (1 << k)
			if met != 0 && c.PC != dead && d.PC != dead && !c.names(k) && !d.names(k) {
				report(i, 1-i)
			}
		}
	}
}

// names reports whether the call has published an alarm about a key.
func (c *transfer) names(k int) bool { return c.alarm() && c.Named == owner(k) }

func (c *transfer) alarm() bool { return c.Told == saysOverlap || c.Told == saysLost }

func falseName(_ *Config, s *State, report func(early, late int)) {
	for i := range s.Several.Calls {
		c := &s.Several.Calls[i]
		key := uint8(1) << (max(c.Named, 1) - 1)
		switch {
		case c.Told == saysOverlap && c.Foreign&key == 0, c.Told == saysLost && c.Gone&key == 0, c.Told == saysUnknown && !c.Unheard:
			report(i, i)
		}
	}
}

func waitsForever(cfg *Config, s *State, report func(early, late int)) {
	for i := range s.Several.Calls {
		if pc := s.Several.Calls[i].PC; cfg.several() && pc != returned && pc != dead {
			report(i, i)
		}
	}
}

func holdsSome(cfg *Config, s *State, report func(early, late int)) {
	for i := range s.Several.Calls {
		c := &s.Several.Calls[i]
		if c.Tx == active && c.PC != dead && c.Held != cfg.Keys[i] {
			report(i, i)
		}
		for k := range s.Several.Holder {
			if s.Several.Holder[k] == owner(i) && c.PC == returned && c.Res != unsure {
				report(i, i)
			}
		}
	}
}
