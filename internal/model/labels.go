package model

import "slices"

// A label says which actions are what was seen: those of the caller whom a sight names.
type label struct {
	actions []string
	ofKey   []string                                             // those of a key
	fits    func(cfg *Config, x Seen, before, after *State) bool // nil: always
	idle    func(cfg *Config, x Seen, s *State) bool             // whether no action has to happen; nil: one has to
}

// What some actions say that are seen, or not, depending on what they lead to.
const (
	queueSays      = "%s wants the lock"
	giveBackSays   = "%s gives the lock back"
	takeBackSays   = "the engine takes the lock back from %s"
	reclaimSays    = "%s meets a lock of its own process that nobody uses, which is released"
	beginSays      = "%s begins its transaction"
	breakSays      = "the connection of %s breaks before its BEGIN is answered"
	loadSays       = "%s loads the row"
	sendSays       = "%s sends its write"
	answerSays     = "the database answers the write of %s"
	breakOffSays   = "the connection of %s breaks"
	commitSays     = "%s sends COMMIT"
	executeSays    = "the database executes the COMMIT of %s"
	giveUpSays     = "%s gives up to find out what became of its COMMIT"
	findSays       = "%s asks who has the lock"
	doubtSays      = "%s asks whether it still has the lock"
	abandonSays    = "%s asks who has the lock, and leaves the lock to expire"
	breakReadSays  = "the connection of %s breaks as it reads the claim"
	markedSays     = "%s reads the claim, as there is a mark"
	breakFirstSays = "the connection of %s breaks before its first read is answered"
	overrunSays    = "the turn of %s lasts for too long, and it runs alone"
	missSays       = "the turn of %s does not come in time"
	twinSays       = "%s inserts the row of another of its crew, and runs alone"
	workSays       = "%s runs the operation and stores its answer"
	keepsSays      = "%s gives the lock back, and hands it over no more"
	placeSays      = "%s wants a place in the queue of its process"
	withoutSays    = "%s goes on without the lock"
	passSays       = "the deadline of the abandoned lock of %s passes"
)

var labels = map[Sight]label{
	Overruns:     {actions: []string{overrunSays}, idle: notAboard},
	Parts:        {actions: []string{missSays, twinSays}, idle: at(idle, queued, asking)},
	Queues:       {actions: []string{queueSays, "%s wants the lock, which another caller of its process has: ErrBusy", placeSays}, idle: at(idle, queued, asking, denied)},
	Granted:      {actions: []string{"the engine grants the lock to %s"}},
	Held:         {actions: []string{"%s is refused: ErrBusy"}, idle: asksAgain},
	GrantUnheard: {actions: []string{"the engine grants a lock to %s, whose answer is lost"}},
	AcquireLost:  {actions: []string{"the acquire of %s is held up on its way, and given up"}},
	Unserved:     {actions: []string{"the engine does not serve the acquire of %s"}, idle: asksInVain},
	AcquireLate:  {actions: []string{"the engine executes the late acquire of %s"}, idle: heldByAny},

	Renewed:     {idle: heldBySubject},
	RenewedGone: {actions: []string{"the watchdog finds that the lock of %s is gone"}, idle: givenUp},
	RenewalLost: {idle: anywhen},
	Deadline:    {actions: []string{"%s is paused past the deadline of its lock", passSays}, idle: meansNothing},
	Expired:     {actions: []string{"the lock of %s expires"}},
	LockLost:    {actions: []string{"the lock of %s is lost: its node fails before a replica has it"}},

	SendsRelease:   {actions: []string{giveBackSays, keepsSays}, fits: to(freeing), idle: at(asking)}, // of a lock that it meets
	Released:       {actions: []string{takeBackSays, reclaimSays}, fits: releasesOwn},
	ReleasedGone:   {actions: []string{takeBackSays}, fits: releasesNone, idle: at(asking)},
	ReleaseUnheard: {actions: []string{"%s gives the lock back, and the answer is lost"}},
	ReleaseUnsent:  {actions: []string{"%s gives the lock back, and the request is lost"}},
	OrphanReleased: {actions: []string{"the Locker of %s releases the lock that nobody uses"}},
	OrphanAbsent:   {idle: notHeldBySubject},
	OrphanUnheard:  {idle: anywhen},

	Inspected:      {actions: []string{findSays, doubtSays, abandonSays}, fits: showsHolder},
	InspectUnheard: {actions: []string{"%s asks who has the lock, and gets no answer", "%s asks whether it still has the lock, and gets no answer", "%s asks who has the lock, gets no answer, and leaves the lock to expire"}},

	NodeSilent:     {actions: []string{"the node of the lock falls silent"}},
	NodeRefuses:    {actions: []string{"the node of the lock grants no locks any more"}},
	NodeBack:       {actions: []string{"the node of the lock is back"}},
	OutageBegins:   {actions: []string{withoutSays}, fits: isFirst},
	OutageReported: {idle: hasEnded},
	OutageEnds:     {actions: []string{"the process of %s finds the lock available again"}},

	Begins:    {actions: []string{beginSays}},
	BeginLost: {actions: []string{"the database falls silent, and does not answer the BEGIN of %s", breakSays, breakFirstSays, breakReadSays}, idle: at(granted, marked, refused, unknown, resolving, conflicted, closing)},
	Reads: {
		actions: []string{beginSays, loadSays, "%s rolls back and reads the row again", "%s looks for the row after the deadlock", "%s looks for a proof of what became of its COMMIT"},
		fits:    beginsWithIt,
		idle:    at(loaded, working, unknown, resolving, conflicted, closing, deadlocked),
	},
	ReadLost: {actions: []string{breakOffSays, breakSays, breakFirstSays, breakReadSays, giveUpSays}, idle: at(unknown, resolving, conflicted, closing)},

	SendsWrite:   {actions: []string{sendSays}, fits: to(writing), idle: claimsAgain},
	Writes:       {actions: []string{answerSays}, fits: to(written, working)},
	WriteRefused: {actions: []string{answerSays}, fits: to(refused, conflicted)},
	Deadlocked:   {actions: []string{"the database ends the transaction of %s: deadlock"}},
	WriteLost:    {actions: []string{breakOffSays}},
	WriteLeft:    {actions: []string{"the write of %s is cancelled, as its lease has ended"}},

	SendsCommit:    {actions: []string{commitSays}, fits: to(committing)},
	Commits:        {actions: []string{executeSays}},
	CommitsLate:    {actions: []string{executeSays}, idle: anywhen},
	CommitAnswered: {actions: []string{"%s has the answer to its COMMIT"}},
	CommitRefused:  {actions: []string{"the database refuses the COMMIT of %s: deadlock"}},
	CommitLost:     {actions: []string{"the connection of %s breaks, and its COMMIT is lost"}},
	CommitUnheard:  {actions: []string{"the connection of %s breaks, and the answer to its COMMIT is lost"}},
	Flushed:        {actions: []string{"the database writes its log to the disk, which holds the commit of %s then"}, idle: durable},

	Marked:     {actions: []string{"%s finds a mark that the request is done"}},
	ReadsClaim: {actions: []string{markedSays}, idle: at(closing)}, // of one that was in the way
	ClaimTaken: {actions: []string{"%s waits no longer for the transaction that has the claim"}, idle: awaitsClaim},
	Changes:    {actions: []string{"%s makes its change"}, idle: changesOwn},
	Enters:     {idle: enters},
	Works:      {actions: []string{workSays}, fits: to(written)},
	WorkLeft:   {actions: []string{workSays}, fits: to(closing)},

	Killed:  {actions: []string{"the process of %s is killed"}, idle: resting},
	Crashed: {actions: []string{"the database crashes and starts again"}},

	Publishes: {actions: []string{"%s publishes an event"}, fits: hasVerdict},
	Returns:   {idle: hasReturned},
	Rests:     {idle: agrees},
}

// A hidden condition says when an action may happen unseen that leads from before to after.
type hidden func(cfg *Config, before, after *State, i int) bool

var unseen = map[string]hidden{
	"the watchdog sees that the deadline of the lock of %s has passed": unnoticed,
	"the Locker forgets the request of %s that got no answer":          unnoticed,
	"the database rolls back what the lost connection of %s left open": unnoticed,
	"%s has the session of its COMMIT ended":                           unnoticed,
	"the time of %s ends":                                              unnoticed,
	giveUpSays:                                                         unnoticed,
	beginSays:                                                          unsent,
	sendSays:                                                           unsent,
	commitSays:                                                         unsent,
	loadSays:                                                           func(cfg *Config, before, _ *State, i int) bool { return !cfg.Update || before.useless(i) },
	findSays:                                                           func(cfg *Config, before, _ *State, i int) bool { return before.unasked(cfg, i) },
	doubtSays:                                                          func(cfg *Config, before, _ *State, i int) bool { return before.useless(i) || before.unasked(cfg, i) },
	abandonSays:                                                        func(cfg *Config, before, _ *State, i int) bool { return before.useless(i) || before.unasked(cfg, i) },
	withoutSays:                                                        func(cfg *Config, before, _ *State, i int) bool { return before.proc(cfg, i).Out },
	passSays:                                                           func(_ *Config, before, _ *State, i int) bool { return before.Grants[i].Local },
	"%s finds its row as its crew begins, which falls apart": unnoticed,
	"%s closes its crew": unnoticed,
	twinSays:             unnoticed,
	"the mark expires":   unnoticed,
	workSays:             func(_ *Config, _, after *State, i int) bool { return after.Callers[i].PC != written }, // a refusal, or its lease has ended
	giveBackSays:         func(_ *Config, _, after *State, i int) bool { return after.Callers[i].PC != freeing },
}

func unnoticed(*Config, *State, *State, int) bool { return true }

// unsent is a request that is not made, as the lease has ended.
func unsent(_ *Config, _, after *State, i int) bool { return after.Callers[i].PC == closing }

// useless reports whether caller i knows, once it looks, that its lease has ended.
func (s *State) useless(i int) bool {
	g := s.grant(i)
	return g.State == lost || g.State == held && g.Past
}

// to is an action that leads its caller there.
func to(pcs ...pc) func(*Config, Seen, *State, *State) bool {
	return func(_ *Config, x Seen, _, after *State) bool { return slices.Contains(pcs, after.Callers[x.Who].PC) }
}

// at is a sight that needs no action of a caller who is there.
func at(pcs ...pc) func(*Config, Seen, *State) bool {
	return func(_ *Config, x Seen, s *State) bool { return slices.Contains(pcs, s.Callers[x.Who].PC) }
}

func anywhen(*Config, Seen, *State) bool { return true }

func heldByAny(_ *Config, _ Seen, s *State) bool { return s.Holder != 0 }

func heldBySubject(_ *Config, x Seen, s *State) bool { return s.Holder == owner(x.Who) }

func notHeldBySubject(_ *Config, x Seen, s *State) bool { return s.Holder != owner(x.Who) }

// asksAgain: who waits goes on, and so does who meets a lock that nobody uses.
func asksAgain(cfg *Config, x Seen, s *State) bool {
	return s.Holder != 0 && s.Callers[x.Who].PC == asking && (!cfg.Refuse || s.reclaimable(cfg, x.Who))
}

// asksInVain: a caller that waits asks a node again that serves no locks.
func asksInVain(cfg *Config, x Seen, s *State) bool {
	return s.Node != up && s.Callers[x.Who].PC == asking && s.asks(cfg, x.Who) && !cfg.Refuse
}

// isFirst: the first caller who goes on without the lock reports it, and the others do not.
func isFirst(cfg *Config, x Seen, before, _ *State) bool { return !before.proc(cfg, x.Who).Out }

// hasEnded: the end of an outage is reported behind it, perhaps after the next one has begun.
func hasEnded(cfg *Config, x Seen, s *State) bool { return int(s.proc(cfg, x.Who).Ends) >= x.Count }

// givenUp: the Locker did not rely on the grant any more when its renewal was answered.
func givenUp(_ *Config, x Seen, s *State) bool {
	return s.Grants[x.Who].State != held && s.Holder != owner(x.Who)
}

// meansNothing: the deadline is that of a grant which nobody relies on.
func meansNothing(_ *Config, x Seen, s *State) bool {
	g := &s.Grants[x.Who]
	return g.Past || g.State != held && g.State != abandoned
}

// releases reports whether a caller gives back its own grant, or one that it meets.
func (s *State) releases(x Seen) bool {
	c := &s.Callers[x.Who]
	return c.PC == asking || c.Grant == owner(x.Of)
}

func releasesOwn(_ *Config, x Seen, before, _ *State) bool {
	return before.Holder == owner(x.Of) && before.releases(x)
}

func releasesNone(_ *Config, x Seen, before, _ *State) bool {
	return before.Holder != owner(x.Of) && before.releases(x)
}

// beginsWithIt: on PostgreSQL the first read counts, as it takes the snapshot.
func beginsWithIt(cfg *Config, x Seen, before, _ *State) bool {
	return cfg.Postgres || before.Callers[x.Who].PC != granted
}

func showsHolder(cfg *Config, x Seen, before, _ *State) bool {
	return !before.unasked(cfg, x.Who) && holderNames[before.holder(x.Who)] == x.Says
}

func durable(_ *Config, x Seen, s *State) bool { return s.Unsafe&(1<<x.Who) == 0 }

func resting(cfg *Config, x Seen, s *State) bool { return !s.atWork(cfg, x.Who) }

func hasVerdict(cfg *Config, x Seen, before, _ *State) bool {
	return verdictNames[before.Callers[x.Who].Pending] == x.Says && int(before.counted(cfg, x.Who)) == x.Count
}

// hasReturned: a caller does not learn which caller of its process has refused it. A repeat
// shows whose answer it is.
func hasReturned(_ *Config, x Seen, s *State) bool {
	c := &s.Callers[x.Who]
	switch {
	case c.PC != returned:
		return false
	case c.Res == replayed && int(c.Got) != x.Of+1:
		return false
	}
	return resultNames[c.Res] == x.Says || c.Res == engaged && x.Says == resultNames[busy]
}

// agrees: the servers have what the model has.
func agrees(cfg *Config, x Seen, s *State) bool {
	if cfg.request() && (int(s.Row.Effects) != x.Effects || x.Marked != (s.Mark != 0)) {
		return false
	}
	return int(s.Holder) == x.Holder+1 && int(s.Row.Version) == x.Version
}

// claimsAgain: MySQL bounds the wait for a claim, and the caller has time for another.
func claimsAgain(cfg *Config, x Seen, s *State) bool {
	return cfg.request() && s.Callers[x.Who].PC == writing
}

// awaitsClaim: a claim is in the way, and the caller has time to wait for it again.
func awaitsClaim(cfg *Config, x Seen, s *State) bool {
	return claimsAgain(cfg, x, s) && s.locked(x.Who)
}

// notAboard: it has no part in the transaction of another.
func notAboard(_ *Config, x Seen, s *State) bool { return s.Callers[x.Who].PC != aboard }

// changesOwn: it leads, or runs alone, or has missed the end of its turn. It does not know of a crash of
// the database since its begin, nor do its members.
func changesOwn(_ *Config, x Seen, s *State) bool {
	c := &s.Callers[x.Who]
	if c.PC == aboard {
		return s.Callers[c.Leader-1].PC == closing
	}
	return c.PC == loaded || c.PC == closing || c.PC == idle && c.Apart
}

// enters: the operation of a request begins behind its claim, and does not run to store a refusal.
// It does not know of a crash of the database since then.
func enters(_ *Config, x Seen, s *State) bool {
	c := &s.Callers[x.Who]
	return !c.Refusing && (c.PC == working || c.PC == closing)
}

// names returns what the actions of a sight of key k say.
func (l label) names(k int) []string {
	all := slices.Clip(l.actions)
	for _, says := range l.ofKey {
		all = append(all, ofKey(says, k))
	}
	return all
}
