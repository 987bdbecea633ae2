package model

// The policy DBOnly: guard/acquire.go and outage.go.

var outageActions = []action{
	{anywhere, "the node of the lock falls silent", nodeSilent},
	{anywhere, "the node of the lock grants no locks any more", nodeRefuses},
	{anywhere, "the node of the lock is back", nodeBack},
	{asking, "%s goes on without the lock", goWithout},
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

func goWithout(cfg *Config, s *State, i int) bool {
	p := s.proc(cfg, i)
	if !cfg.DBOnly || !p.Out && s.Node == up {
		return false
	}
	if !p.Out {
		p.Out = true
		p.Begins++
	}
	s.Grants[i] = Grant{State: held, Local: true}
	s.Callers[i].Grant, s.Callers[i].PC = owner(i), granted
	return true
}

func probe(cfg *Config, s *State, i int) bool {
	p := s.proc(cfg, i)
	if !p.Out || i != s.first(cfg, i) || s.Node != up && (!cfg.Weak.ProbeReads || s.Node == silent) {
		return false
	}
	p.Out = false
	p.Ends++
	return true
}
