package call

// die is the death of a process at any step.
func die(_ *Config, s *State, i int) bool {
	p := &s.Processes[i]
	if p.PC == idle || p.PC >= returned || !s.fail() {
		return false
	}
	if s.Tx1 == holder(i) {
		s.Tx1 = 0
	}
	s.Landing = s.Landing || p.PC == calling
	if s.Lock == holder(i) {
		s.Lock = 0 // it expires
	}
	*p = Process{PC: dead, Bytes: p.Bytes}
	return true
}

func loseLock(cfg *Config, s *State, i int) bool {
	p := &s.Processes[i]
	if s.Lock != holder(i) || s.Faults == 0 {
		return false
	}
	s.Faults--
	s.Lock = 0
	if cfg.Weak == CallEndsWithLock && p.PC == calling {
		s.Landing = true
		s.leave(i, true)
	}
	return true
}

// endLease comes as soon as it may: a process may pause at each step.
func endLease(_ *Config, s *State, _ int) bool {
	if !s.P || !s.Lease {
		return false
	}
	s.Lease, s.Trouble = false, true
	for i := range s.Processes {
		if p := &s.Processes[i]; p.Attempt == s.Attempt && (p.PC == ready || p.PC == calling || p.PC == got) {
			p.Over = true
		}
	}
	return true
}

func passUntil(_ *Config, s *State, _ int) bool {
	if s.Past || s.Reserved == 0 {
		return false
	}
	s.Past, s.Trouble = true, true
	return true
}

func land(_ *Config, s *State, _ int) bool {
	if !s.Landing {
		return false
	}
	s.Landing = false
	s.execute()
	return true
}

func landRefused(_ *Config, s *State, _ int) bool {
	if !s.Landing || s.Remembers == accepted {
		return false
	}
	s.Landing, s.Remembers = false, refused
	return true
}

// forget comes when the provider has executed or dropped the last call that began before Until: it
// keeps ids for Until and the Timeout of a call.
func forget(_ *Config, s *State, _ int) bool {
	if !s.Past || s.Remembers == nothing || s.Landing {
		return false
	}
	for i := range s.Processes {
		if p := &s.Processes[i]; p.PC == calling && p.Begun {
			return false
		}
	}
	s.Remembers = nothing
	return true
}

// oldProgram knows no belay_pending: an inbox of an old binary, which acknowledges what is done.
func oldProgram(_ *Config, s *State, _ int) bool {
	if !s.C {
		return false
	}
	before := s.Broken
	s.done()
	return s.Broken != before
}

func purgeClaim(cfg *Config, s *State, _ int) bool {
	if !s.C || s.False || !s.Past && cfg.Weak != ClaimPurgedEarly {
		return false
	}
	s.C = false
	s.Ended = s.Past || s.Ended
	if !s.Past {
		s.broke(8)
	}
	return true
}

func purgePending(cfg *Config, s *State, _ int) bool {
	if !s.P || cfg.Weak != PendingPurged {
		return false
	}
	s.P = false
	return true
}
