package model

import "slices"

// keyLabels are those of callers with several keys.
var keyLabels = map[Sight]label{
	Queues:      {actions: []string{"%s calls Do"}, idle: is(idle, asking)},
	Granted:     {ofKey: []string{grantKeySays}},
	Held:        {ofKey: []string{refuseKeySays}, idle: waitsForKey},
	AcquireLost: {actions: []string{stopSays}, idle: is(closing, freeing, reporting, returned)},

	Renewed:     {idle: hasKey},
	RenewedGone: {ofKey: []string{noticeKeySays}, idle: reliesNoMore},
	RenewalLost: {idle: anywhen},
	Deadline:    {idle: reliesNoMore},
	Expired:     {ofKey: []string{expireKeySays}},
	LockLost:    {ofKey: []string{loseKeySays}},

	SendsRelease:   {actions: []string{giveAllBackSays}, idle: is(freeing)},
	Released:       {ofKey: []string{releaseKeySays}, fits: hadKey},
	ReleasedGone:   {ofKey: []string{releaseKeySays}, fits: hadNoKey},
	OrphanAbsent:   {idle: hasNoKey},
	OrphanUnheard:  {idle: anywhen},
	Inspected:      {ofKey: []string{askKeySays}, fits: showsKey, idle: looksAtKey},
	InspectUnheard: {idle: is(closing)}, // of one who does not wait for the answer

	Begins:    {actions: []string{beginSays}},
	BeginLost: {actions: []string{"the connection of %s breaks"}, idle: is(granted, closing)},
	Reads:     {actions: []string{resolveSays}, ofKey: []string{seeKeySays, findChangedSays, takeChangedSays}, idle: readsKey},
	ReadLost:  {idle: is(writing, unknown, closing)},

	SendsWrite:   {idle: sendsKey},
	Writes:       {ofKey: []string{writeKeySays}, fits: leads(writing, written)},
	WriteRefused: {ofKey: []string{writeKeySays}, fits: refusesKey},
	Deadlocked:   {actions: []string{"the database ends the transaction of %s: deadlock"}},
	WriteLost:    {actions: []string{"the connection of %s breaks"}},
	WriteLeft:    {ofKey: []string{writeKeySays}, fits: leads(closing)},

	SendsCommit:    {actions: []string{commitSays}, fits: leads(committing)},
	Commits:        {actions: []string{executeSays}},
	CommitsLate:    {actions: []string{executeSays}, idle: anywhen},
	CommitAnswered: {actions: []string{"%s has the answer to its COMMIT"}},
	CommitRefused:  {actions: []string{"the database refuses the COMMIT of %s: deadlock"}},
	CommitLost:     {actions: []string{"the connection of %s breaks, and its COMMIT is lost"}},
	CommitUnheard:  {actions: []string{"the connection of %s breaks, and the answer to its COMMIT is lost"}},

	Killed:    {actions: []string{"the process of %s is killed"}, idle: is(idle, returned)},
	Publishes: {actions: []string{"%s publishes an event"}, fits: namesKey},
	Returns:   {idle: returnsIt},
	Rests:     {idle: agreesOfKey},
}

// keyUnseen are the actions of callers with several keys that may happen unseen.
var keyUnseen = map[string]hidden{
	stopSays:               unnoticed,
	dropSays:               unnoticed,
	endSays:                unnoticed,
	leaveSays:              unnoticed,
	commitSays:             endsUnsent,
	ofKey(writeKeySays, 0): endsUnsent,
	ofKey(writeKeySays, 1): endsUnsent,
	beginSays: func(cfg *Config, before, after *State, i int) bool {
		return cfg.Postgres || endsUnsent(cfg, before, after, i)
	},
	giveAllBackSays: func(_ *Config, before, _ *State, i int) bool {
		c := &before.Several.Calls[i]
		return c.Held&^c.Lost == 0
	},
	ofKey(releaseKeySays, 0): func(_ *Config, before, _ *State, i int) bool { return before.Several.Calls[i].Lost&1 != 0 },
	ofKey(releaseKeySays, 1): func(_ *Config, before, _ *State, i int) bool { return before.Several.Calls[i].Lost&2 != 0 },
}

// endsUnsent is a request that is not made, as a lease has ended.
func endsUnsent(_ *Config, _, after *State, i int) bool {
	c := &after.Several.Calls[i]
	return c.PC == closing && c.Refused == 0
}

// is fits a sight of a caller who is there, which needs no action.
func is(pcs ...pc) func(*Config, Seen, *State) bool {
	return func(_ *Config, x Seen, s *State) bool { return slices.Contains(pcs, s.call(x).PC) }
}

// leads is an action that leads its caller there.
func leads(pcs ...pc) func(*Config, Seen, *State, *State) bool {
	return func(_ *Config, x Seen, _, after *State) bool {
		return slices.Contains(pcs, after.call(x).PC) && after.call(x).Refused == 0
	}
}

// call is that of the caller whom a sight names.
func (s *State) call(x Seen) *transfer { return &s.Several.Calls[x.Who] }

// keyHolder is what the engine answers to the question who has the key.
func (s *State) keyHolder(x Seen) holder {
	switch s.Several.Holder[x.Key] {
	case 0:
		return none
	case owner(x.Who):
		return self
	}
	return other
}

func hasKey(_ *Config, x Seen, s *State) bool { return s.keyHolder(x) == self }

func hasNoKey(_ *Config, x Seen, s *State) bool { return s.keyHolder(x) != self }

func hadKey(_ *Config, x Seen, before, _ *State) bool { return before.keyHolder(x) == self }

// hadNoKey: the release of a lease that has ended is not its caller's.
func hadNoKey(_ *Config, x Seen, before, _ *State) bool {
	return before.keyHolder(x) != self && before.call(x).Lost&(1<<x.Key) == 0
}

// waitsForKey: who waits asks again.
func waitsForKey(cfg *Config, x Seen, s *State) bool {
	c := s.call(x)
	return !cfg.Refuse && c.PC == asking && cfg.next(x.Who, c.Held) == x.Key && s.Several.Holder[x.Key] != 0
}

// reliesNoMore: the lease has ended, or is about to.
func reliesNoMore(_ *Config, x Seen, s *State) bool {
	c := s.call(x)
	return !c.has(x.Key) || c.PC == freeing || c.Lost&(1<<x.Key) != 0
}

func showsKey(_ *Config, x Seen, before, _ *State) bool {
	return holderNames[before.keyHolder(x)] == x.Says
}

// looksAtKey: a caller whose write was refused asks who has the key of its row, and one that has found that
// its COMMIT did not take effect asks for all.
func looksAtKey(_ *Config, x Seen, s *State) bool {
	c := s.call(x)
	if holderNames[s.keyHolder(x)] != x.Says {
		return false
	}
	return c.PC == unknown || c.PC == closing && (c.Refused == owner(x.Key) || c.Unheard && x.Says == holderNames[self])
}

// readsKey: a row that was seen before is read again. If it has changed, its write shows that.
func readsKey(_ *Config, x Seen, s *State) bool {
	c := s.call(x)
	return c.PC == unknown || c.PC == closing || c.PC == writing && c.Lost == 0 && c.Snap[x.Key] != 0
}

func sendsKey(cfg *Config, x Seen, s *State) bool {
	c := s.call(x)
	return c.PC == writing && c.Lost == 0 && cfg.row(x.Who, c.Row) == x.Key
}

func refusesKey(_ *Config, x Seen, _, after *State) bool {
	return after.call(x).Refused == owner(x.Key)
}

func namesKey(_ *Config, x Seen, before, after *State) bool {
	return verdictNames[before.call(x).Pending] == x.Says && after.call(x).Named == owner(x.Key) && x.Count == 1
}

func returnsIt(_ *Config, x Seen, s *State) bool {
	return s.call(x).PC == returned && resultNames[s.call(x).Res] == x.Says
}

// agreesOfKey: the servers have what the model has of a key.
func agreesOfKey(_ *Config, x Seen, s *State) bool {
	return int(s.Several.Holder[x.Key]) == x.Holder+1 && int(s.Several.Rows[x.Key].Version) == x.Version
}
