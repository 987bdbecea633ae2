package model

// What a Do decides: guard/attempt.go, finding.go, verdict.go and finish.go.

var callerActions = []action{
	{conflicted, "%s asks who has the lock", heard(find)},
	{conflicted, "%s asks who has the lock, and gets no answer", unheard(find)},
	{doubting, "%s asks whether it still has the lock", heard(doubt)},
	{doubting, "%s asks whether it still has the lock, and gets no answer", unheard(doubt)},
	{giving, "%s asks who has the lock, and leaves the lock to expire", heard(abandon)},
	{giving, "%s asks who has the lock, gets no answer, and leaves the lock to expire", unheard(abandon)},
	{reporting, "%s publishes an event", publish},
}

// holder is what the engine answers to the question who has the key.
func (s *State) holder(i int) holder {
	switch s.Holder {
	case 0:
		return none
	case s.Callers[i].Grant:
		return self
	}
	return other
}

// heard is an action that asks the engine who has the key. It is not asked in an outage, and by a
// caller without the lock.
func heard(then func(cfg *Config, s *State, i int, h holder)) func(cfg *Config, s *State, i int) bool {
	return func(cfg *Config, s *State, i int) bool {
		h := notAsked
		switch {
		case s.grant(i).Local:
		case s.proc(cfg, i).Out, s.Node == silent && s.useless(i):
			s.Callers[i].AskUnheard = true
		case s.Node == silent:
			return false
		default:
			h = s.holder(i)
		}
		then(cfg, s, i, h)
		return true
	}
}

// unheard is the same where the answer is lost, or the node is silent.
func unheard(then func(cfg *Config, s *State, i int, h holder)) func(cfg *Config, s *State, i int) bool {
	return func(cfg *Config, s *State, i int) bool {
		if s.unasked(cfg, i) || s.Node != silent && !s.spend(cfg, &s.Left.Mute) {
			return false
		}
		s.Callers[i].AskUnheard = true
		then(cfg, s, i, notAsked)
		return true
	}
}

// unasked reports whether caller i asks nobody who has the key.
func (s *State) unasked(cfg *Config, i int) bool { return s.grant(i).Local || s.proc(cfg, i).Out }

// find judges the conflict of a caller. A lost race without the lock is run again.
func find(cfg *Config, s *State, i int, h holder) {
	c := &s.Callers[i]
	c.Found.Lapsed, c.Found.Holder = s.lapsed(cfg, i), h
	s.judge(cfg, i)
	if cfg.request() && s.findRecord(cfg, i) {
		return
	}
	if s.grant(i).Local && c.Found.Verdict == saysRepeat && cfg.Update && !cfg.Brought && c.Found.Changed && c.Tries < 2 {
		s.again(cfg, i)
		return
	}
	if c.Found.Verdict == saysOvertaken && !cfg.Brought && c.Tries < 2 {
		s.overtake(cfg, i)
		return
	}
	c.PC, c.Ended = closing, refusedWrite
	if v := c.Found.Verdict; cfg.Swallow && (cfg.Weak.HideSwallowed || v != saysOverlap && v != saysLost) {
		c.Ended, c.Swallowed = committed, true // it commits what it has written else
	}
}

// overtake makes an attempt again that another caller was faster than. It reads the row anew.
func (s *State) overtake(cfg *Config, i int) {
	c := &s.Callers[i]
	c.Mem, c.Known, c.Fresh, c.Later, c.Stranger = 0, false, false, false, false
	s.again(cfg, i)
}

// judge is guard.judge.
func (s *State) judge(cfg *Config, i int) {
	f, locked := &s.Callers[i].Found, !s.grant(i).Local
	switch {
	case cfg.Weak.JudgeWithoutEvidence:
		f.Verdict = saysRepeat
	case !f.There && !f.Changed:
		f.Verdict = saysBusiness
	case s.foreign(cfg, i) && !cfg.Weak.JudgeForeign:
		f.Verdict = saysBusiness
	case f.Changed && locked && cfg.Shared && !f.gone() && cfg.Weak.OvertakenIsBusiness:
		f.Verdict = saysBusiness
	case f.Changed && locked && cfg.Shared && !f.gone():
		f.Verdict = saysOvertaken
	case f.Changed && locked:
		f.Verdict = saysOverlap
	case !f.Changed && f.Expected:
		f.Verdict = saysBusiness
	case locked && f.gone():
		f.Verdict = saysLost
	default:
		f.Verdict = saysRepeat
	}
}

// conclude is call.finish behind the release: gone is what that has shown.
func (s *State) conclude(cfg *Config, i int, gone bool) {
	c := &s.Callers[i]
	switch c.Ended {
	case refusedWrite:
		s.concludeRefused(cfg, i, gone)
	case committed:
		c.Res = done
	case gaveUp:
		c.Res = claimed
	case metRow:
		c.Res = exists
		if cfg.Weak.RowIsRequest {
			c.Res = duplicate
		}
	default:
		c.Res = failed
		if s.grant(i).State == orphaned && gone { // Lease.Err knew it before the release
			c.Res = lostLease
		}
	}
	if gone && c.Pending == noVerdict {
		c.Pending = saysLost
	}
	c.PC = reporting
	if c.Pending == noVerdict {
		c.PC = returning
	}
}

func (s *State) concludeRefused(cfg *Config, i int, gone bool) {
	c := &s.Callers[i]
	if gone && c.Found.Holder == notAsked {
		c.Found.Holder = none
		s.judge(cfg, i)
	}
	switch c.Found.Verdict {
	case saysOverlap, saysLost:
		c.Pending, c.Res, c.Scatters = c.Found.Verdict, intercepted, false
		if gone && cfg.Weak.TwoEvents {
			c.Events++
		}
	case saysOvertaken:
		c.Res = raced
	case saysRepeat:
		c.Res = duplicate
		if cfg.Update {
			c.Res = stale
		}
	default:
		c.Res = business
	}
	if c.Got != 0 {
		c.Res = replayed
	}
}

// doubt is call.held: a row has shown that nothing was committed.
func doubt(cfg *Config, s *State, i int, h holder) {
	c := &s.Callers[i]
	if s.lapsed(cfg, i) || h != self {
		c.PC = giving
		return
	}
	c.fail()
}

// abandon is the end of a call whose commit has remained unknown.
func abandon(cfg *Config, s *State, i int, h holder) {
	c, g := &s.Callers[i], s.grant(i)
	c.Res, c.PC, c.Pending = unsure, reporting, saysUnknown
	if s.lapsed(cfg, i) {
		c.Pending = saysLost
		return
	}
	if h == other || h == none {
		c.Pending = saysLost
	}
	g.State, g.Shut = abandoned, true
	switch {
	case cfg.Weak.ReleaseUnknown:
		g.State = ended
		if s.Holder == c.Grant {
			s.Holder = 0
		}
		s.leave(cfg, i)
	case cfg.Weak.OpenUnknown:
		s.leave(cfg, i)
	}
}

func publish(cfg *Config, s *State, i int) bool {
	c := &s.Callers[i]
	c.Events++
	c.Said, c.Pending = c.Pending, noVerdict
	if cfg.Crew {
		c.Count = s.counted(cfg, i)
	}
	c.Alarm = c.Alarm || c.Said != saysUnknown
	c.PC = returning
	return true
}
