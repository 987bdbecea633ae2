package model

// The policy DBOnly: guard/acquire.go and outage.go.

var outageActions = []action{
	{anywhere, "the node of the lock falls silent", nodeSilent},
	{anywhere, "the node of the lock grants no locks any more", nodeRefuses},
	{anywhere, "the node of the lock is back", nodeBack},
	{asking, "the engine does not serve the acquire of %s", beDenied},
	{denied, placeSays, askForPlace},
	{asking, withoutSays, goWithout},
	{anywhere, "the process of %s finds the lock available again", probe},
}

func nodeSilent(cfg *Config, s *State, i int) bool { return nodeOut(cfg, s, i, silent) }

func nodeRefuses(cfg *Config, s *State, i int) bool { return nodeOut(cfg, s, i, refuses) }

func nodeOut(cfg *Config, s *State, i int, to node) bool {
	if i != 0 || s.Node != up || !s.spend(cfg, &s.Left.Outage) {
		return false
	}
	s.Node = to
	s.Outages++
	return true
}

func nodeBack(_ *Config, s *State, i int) bool {
	if i != 0 || s.Node == up {
		return false
	}
	s.Node = up
	return true
}

// asks reports whether caller i asks the engine for the lock when its turn comes. A caller that waits learns
// of an outage that begins meanwhile. One that does not wait may have come before it.
func (s *State) asks(cfg *Config, i int) bool {
	return !s.Callers[i].Denied && (!s.proc(cfg, i).Out || cfg.Refuse)
}

// beDenied is the last acquire of a caller whom the engine does not serve: it leaves the queue. The
// caller behind it asks next.
func beDenied(cfg *Config, s *State, i int) bool {
	if !cfg.DBOnly || s.Node == up || !s.asks(cfg, i) {
		return false
	}
	s.leave(cfg, i)
	s.Callers[i].PC, s.Callers[i].Denied = denied, true
	return true
}

// askForPlace leads to the end of the queue, whether the node is back or not.
func askForPlace(cfg *Config, s *State, i int) bool {
	s.enter(cfg, i)
	return true
}

// goWithout is a place in the local queue. The first caller that has one begins the outage.
func goWithout(cfg *Config, s *State, i int) bool {
	p := s.proc(cfg, i)
	if !p.Out && !s.Callers[i].Denied {
		return false
	}
	if !p.Out {
		p.Out = true
		p.Begins++
	}
	s.Grants[i] = Grant{State: held, Local: true}
	c := &s.Callers[i]
	c.Grant, c.PC, c.Denied = owner(i), granted, false
	return true
}

func probe(cfg *Config, s *State, i int) bool {
	p := s.proc(cfg, i)
	if !p.Out || i != s.first(cfg, i) || s.Node != up && (!cfg.Weak.ProbeReads || s.Node == silent) {
		return false
	}
	p.Out = false
	p.Ends++
	for j := range s.Callers {
		if cfg.Callers[j] == cfg.Callers[i] {
			s.Callers[j].Denied = false
		}
	}
	return true
}
