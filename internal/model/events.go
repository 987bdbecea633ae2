package model

// The way of the events: notify/outbox, the broker, and the monitor. Two events are
// stored, one after the other or the second after a failover of the outbox's database.

const events = 2

type path struct {
	Rows, Replica  [events + 1]uint8 // by row id: the event, from 1
	Next, NextThen uint8             // id of the next row, and as the replica has it
	Stored, Lost   uint8             // events, a bit each; Lost went with a failed database
	Row, Event     uint8             // that the relay has in hand, from 1
	Confirmed      bool
	Queue          [events]uint8 // messages at the broker
	Inbox          uint8         // the event that the monitor reads, from 1
	Kept           [events]uint8 // times that the monitor has stored it
}

var pathActions = []action{
	{anywhere, "event %d is stored in the outbox", storeEvent},
	{anywhere, "the replica has all rows", replicate},
	{anywhere, "the relay takes row %d", takeRow},
	{anywhere, "the relay publishes its event", publishRow},
	{anywhere, "the relay publishes its event, and the broker's answer is lost", publishUnheard},
	{anywhere, "the relay deletes its row", deleteRow},
	{anywhere, "the relay is killed", killRelay},
	{anywhere, "the database of the outbox fails, and its replica is promoted", failOver},
	{anywhere, "the monitor reads event %d", readEvent},
	{anywhere, "the monitor stores the event", keepEvent},
	{anywhere, "the monitor is killed", killMonitor},
}

func storeEvent(_ *Config, s *State, e int) bool {
	p := &s.Path
	if e >= events || p.Stored&(1<<e) != 0 || int(p.Next) >= len(p.Rows) {
		return false
	}
	p.Stored |= 1 << e
	p.Rows[p.Next] = owner(e)
	p.Next++
	return true
}

func replicate(_ *Config, s *State, i int) bool {
	p := &s.Path
	if i != 0 || p.Replica == p.Rows && p.NextThen == p.Next {
		return false
	}
	p.Replica, p.NextThen = p.Rows, p.Next
	return true
}

func takeRow(_ *Config, s *State, id int) bool {
	p := &s.Path
	if p.Row != 0 || p.Rows[id] == 0 {
		return false
	}
	p.Row, p.Event = owner(id), p.Rows[id]
	return true
}

func publishRow(_ *Config, s *State, i int) bool {
	p := &s.Path
	if i != 0 || p.Row == 0 || p.Confirmed {
		return false
	}
	p.Queue[p.Event-1]++
	p.Confirmed = true
	return true
}

func publishUnheard(cfg *Config, s *State, i int) bool {
	p := &s.Path
	if i != 0 || p.Row == 0 || p.Confirmed || !s.spend(cfg, &s.Left.Mute) {
		return false
	}
	p.Queue[p.Event-1]++
	p.relayIdle()
	return true
}

func deleteRow(cfg *Config, s *State, i int) bool {
	p := &s.Path
	if i != 0 || !p.Confirmed {
		return false
	}
	if row := &p.Rows[p.Row-1]; *row == p.Event || cfg.Weak.DeleteByID {
		*row = 0
	}
	p.relayIdle()
	return true
}

func (p *path) relayIdle() { p.Row, p.Event, p.Confirmed = 0, 0, false }

func killRelay(cfg *Config, s *State, i int) bool {
	if i != 0 || s.Path.Row == 0 || !s.spend(cfg, &s.Left.Kill) {
		return false
	}
	s.Path.relayIdle()
	return true
}

func failOver(cfg *Config, s *State, i int) bool {
	p := &s.Path
	if i != 0 || !s.spend(cfg, &s.Left.Crash) {
		return false
	}
	for _, e := range p.Rows[p.NextThen:] {
		if e != 0 {
			p.Lost |= 1 << (e - 1)
		}
	}
	p.Rows, p.Next = p.Replica, p.NextThen
	return true
}

func readEvent(cfg *Config, s *State, e int) bool {
	p := &s.Path
	if e >= events || p.Inbox != 0 || p.Queue[e] == 0 {
		return false
	}
	p.Inbox = owner(e)
	if cfg.Weak.AckBeforeStore {
		p.Queue[e]--
	}
	return true
}

func keepEvent(cfg *Config, s *State, i int) bool {
	p := &s.Path
	if i != 0 || p.Inbox == 0 {
		return false
	}
	e := p.Inbox - 1
	if p.Kept[e] == 0 { // its id is unique
		p.Kept[e]++
	}
	if p.Queue[e] > 0 && !cfg.Weak.AckBeforeStore {
		p.Queue[e]--
	}
	p.Inbox = 0
	return true
}

// killMonitor is a kill before the event is stored: the broker delivers it again.
func killMonitor(cfg *Config, s *State, i int) bool {
	if i != 0 || s.Path.Inbox == 0 || !s.spend(cfg, &s.Left.Kill) {
		return false
	}
	s.Path.Inbox = 0
	return true
}
