package call

func getLock(_ *Config, s *State, i int) bool {
	if s.Lock != 0 {
		return false
	}
	s.Lock, s.Processes[i].PC = holder(i), locked
	return true
}

func repeat(_ *Config, s *State, i int) bool {
	if s.Repeats == 0 {
		return false
	}
	s.Repeats--
	s.Processes[i].PC = idle
	return true
}

// breakOff ends a Run by an error of the database or of the lock. A transaction that was open is rolled back.
func breakOff(_ *Config, s *State, i int) bool {
	if !s.fail() {
		return false
	}
	s.leave(i, true)
	return true
}

func missClaim(_ *Config, s *State, i int) bool {
	if s.C {
		return false
	}
	s.Processes[i].PC = missed
	return true
}

func replay(_ *Config, s *State, i int) bool {
	if !s.C {
		return false
	}
	s.done()
	s.leave(i, false)
	return true
}

// done is an answer that the request is done.
func (s *State) done() {
	if s.P {
		s.broke(11)
	}
}

func missPending(_ *Config, s *State, i int) bool {
	if s.P {
		return false
	}
	s.Processes[i].PC = fresh
	return true
}

// other reports whether P is of another content than what process i has.
func (s *State) other(cfg *Config, i int) bool {
	return cfg.Weak != NoPrint && cfg.Weak != PrintNotKept && s.Print != s.Processes[i].Bytes
}

func findOther(cfg *Config, s *State, i int) bool {
	if !s.P || !s.other(cfg, i) {
		return false
	}
	s.leave(i, false)
	return true
}

func (s *State) running(cfg *Config) bool { return s.Lease && cfg.Weak != TakeoverWithoutLease }

func (s *State) undecided(cfg *Config) bool {
	return s.Past && s.Answered == nothing && cfg.Weak != UntilIgnored
}

func findRunning(cfg *Config, s *State, i int) bool {
	if !s.P || s.other(cfg, i) || s.Answered != nothing || !s.running(cfg) {
		return false
	}
	s.leave(i, false)
	return true
}

func findUndecided(cfg *Config, s *State, i int) bool {
	if !s.P || s.other(cfg, i) || s.running(cfg) || !s.undecided(cfg) {
		return false
	}
	s.leave(i, true)
	return true
}

func findStale(cfg *Config, s *State, i int) bool {
	if !s.P || s.other(cfg, i) || s.Answered != nothing || s.running(cfg) || s.undecided(cfg) {
		return false
	}
	s.Processes[i].PC, s.Processes[i].Attempt = stale, s.Attempt
	return true
}

func findAnswered(cfg *Config, s *State, i int) bool {
	if !s.P || s.other(cfg, i) || s.Answered == nothing {
		return false
	}
	p := &s.Processes[i]
	p.PC, p.Attempt, p.Got, p.Counted = settling, s.Attempt, s.Answered, true
	return true
}
