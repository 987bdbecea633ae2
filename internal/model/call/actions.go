package call

// An action is one step of one process, or of the world, whose process is the first.
type action struct {
	says  string // with %s for the process
	world bool
	at    pc
	do    func(cfg *Config, s *State, i int) bool
}

var actions = []action{
	{"%s gets the lock", false, idle, getLock},
	{"%s makes the request again", false, returned, repeat},
	{"%s breaks off before it reserves", false, locked, breakOff},
	{"%s finds no claim", false, locked, missClaim},
	{"%s finds the claim and replays it", false, locked, replay},
	{"%s finds nothing pending", false, missed, missPending},
	{"%s finds the pending call of another, and is busy", false, missed, findRunning},
	{"%s finds what is undecided", false, missed, findUndecided},
	{"%s finds another content", false, missed, findOther},
	{"%s finds a pending call whose lease is over", false, missed, findStale},
	{"%s finds a result", false, missed, findAnswered},
	{"%s inserts P", false, fresh, insert},
	{"%s cannot insert P, and is busy", false, fresh, insertRefused},
	{"%s looks for the claim again", false, inserted, lookAgain},
	{"%s finds the claim behind its INSERT, and is busy", false, inserted, lookRefused},
	{"%s commits the reservation", false, reserving, reserve},
	{"%s commits the reservation, and is not answered", false, reserving, reserveCut},
	{"%s sends a COMMIT of the reservation that is lost", false, reserving, reserveLost},
	{"%s takes over", false, stale, takeOver},
	{"%s takes over, and is not answered", false, stale, takeOverCut},
	{"%s sends a takeover that is lost", false, stale, breakOff},
	{"%s comes too late to take over", false, stale, overtaken},
	{"%s calls", false, ready, call},
	{"%s does not call: its lease is over, or nearly", false, ready, callNot},
	{"the provider accepts the call of %s", false, calling, accept},
	{"the provider refuses the call of %s", false, calling, refuse},
	{"the provider fails for %s", false, calling, callFails},
	{"the answer of the provider to %s is lost", false, calling, callCut},
	{"%s ends its lease", false, failed, giveBack},
	{"%s fails to end its lease", false, failed, breakOff},
	{"the time of the call of %s is over", false, calling, callTimesOut},
	{"%s settles", false, got, settle},
	{"%s settles what it has read", false, settling, settle},
	{"%s fails to settle", false, got, settleFails},
	{"%s fails to settle what it has read", false, settling, settleFails},
	{"%s settles, and is not answered", false, got, settleCut},
	{"%s settles what it has read, and is not answered", false, settling, settleCut},
	{"%s stores the result", false, storing, store},
	{"%s stores the result, is not answered, and goes on", false, storing, storeCut},
	{"%s fails to store the result", false, storing, storeFails},
	{"%s dies", false, dead, die},
	{"the lock of %s is lost", false, dead, loseLock},
	{"the lease ends", true, idle, endLease},
	{"Until passes", true, idle, passUntil},
	{"the provider executes a call whose caller has gone", true, idle, land},
	{"the provider refuses a call whose caller has gone", true, idle, landRefused},
	{"the provider forgets", true, idle, forget},
	{"an old program reads belay_once", true, idle, oldProgram},
	{"the Purger deletes the claim", true, idle, purgeClaim},
	{"the Purger deletes P", true, idle, purgePending},
}

// holder is process i as the holder of the lock, or of transaction 1.
func holder(i int) uint8 { return uint8(i) + 1 } //nolint:gosec // there are two

// insert waits for another's transaction 1.
func insert(_ *Config, s *State, i int) bool {
	if s.Tx1 != 0 {
		return false
	}
	if s.P { // another had the request first, since the lock has failed: it looks for the request again
		s.Processes[i].PC = locked
		return true
	}
	s.Tx1, s.Processes[i].PC = holder(i), inserted
	return true
}

// insertRefused is the end of a process that has looked for the request often enough: the code does so five
// times. Here any look may be the last one.
func insertRefused(_ *Config, s *State, i int) bool {
	if s.Tx1 == 0 && !s.P {
		return false
	}
	s.leave(i, false)
	return true
}

func lookRefused(cfg *Config, s *State, i int) bool {
	if !s.C || cfg.Weak == NoSecondLook {
		return false
	}
	s.Tx1 = 0
	s.leave(i, false)
	return true
}

func lookAgain(cfg *Config, s *State, i int) bool {
	if s.C && cfg.Weak != NoSecondLook {
		s.Tx1, s.Processes[i].PC = 0, locked
		return true
	}
	s.Processes[i].PC = reserving
	return true
}

// commit1 is the effect of COMMIT 1.
func (s *State) commit1(cfg *Config, i int) {
	p := &s.Processes[i]
	s.Next++
	s.Tx1, s.P, s.Lease, s.Attempt, s.Answered, s.Print = 0, true, true, s.Next, nothing, p.Bytes
	s.Reserved++
	p.Attempt, p.Over = s.Next, false
	if cfg.Weak == PendingInOnce {
		s.C, s.False = true, true
	}
}

func reserve(cfg *Config, s *State, i int) bool {
	s.commit1(cfg, i)
	s.Processes[i].PC = ready
	return true
}

func reserveCut(cfg *Config, s *State, i int) bool {
	if !s.fail() {
		return false
	}
	s.commit1(cfg, i)
	if cfg.Weak == CallBeforeResolve {
		s.Processes[i].PC = ready
		return true
	}
	s.leave(i, true) // ErrUnknown
	return true
}

func reserveLost(cfg *Config, s *State, i int) bool {
	if !s.fail() {
		return false
	}
	s.Tx1 = 0
	if cfg.Weak == CallBeforeResolve {
		s.Processes[i].PC = ready
		return true
	}
	s.leave(i, true)
	return true
}

func takeOver(cfg *Config, s *State, i int) bool {
	p := &s.Processes[i]
	lost := !s.P || s.Attempt != p.Attempt || s.Answered != nothing || s.running(cfg) || s.undecided(cfg)
	if lost {
		return false
	}
	s.Next++
	s.Attempt, s.Lease = s.Next, true
	p.Attempt, p.Over, p.PC = s.Next, false, ready
	return true
}

// takeOverCut is a takeover of which its process does not know. Nobody calls for its attempt.
func takeOverCut(cfg *Config, s *State, i int) bool {
	after := *s
	if !after.fail() || !takeOver(cfg, &after, i) {
		return false
	}
	*s = after
	s.leave(i, true)
	return true
}

func overtaken(cfg *Config, s *State, i int) bool {
	after := *s
	if takeOver(cfg, &after, i) {
		return false
	}
	if cfg.Weak == FallThrough {
		s.Processes[i].PC = ready
		return true
	}
	s.leave(i, false)
	return true
}

func call(cfg *Config, s *State, i int) bool {
	p := &s.Processes[i]
	if p.Over || s.Past && cfg.Weak != UntilIgnored {
		return false
	}
	if s.Past {
		s.broke(5)
	}
	if s.Answered != nothing || s.Known {
		s.broke(4)
	}
	if !s.P || s.Attempt != p.Attempt {
		s.broke(7)
	}
	for j := range s.Processes {
		if other := &s.Processes[j]; j != i && other.PC == calling && !other.Over {
			s.broke(6)
		}
	}
	s.Sent |= 1 << p.Bytes
	p.PC, p.Begun = calling, !s.Past
	return true
}

// callNot is of a process whose lease is over, or will be before the call has its time.
func callNot(cfg *Config, s *State, i int) bool {
	after := *s
	if call(cfg, &after, i) && !s.fail() {
		return false
	}
	s.Trouble = true
	s.Processes[i].PC = failed
	return true
}

// execute is what the provider does with a call.
func (s *State) execute() {
	if s.Remembers == nothing {
		s.Charges++
		s.Remembers = accepted
	}
}

func accept(_ *Config, s *State, i int) bool {
	if s.Remembers == refused {
		return false
	}
	s.execute()
	s.Processes[i].PC, s.Processes[i].Got = got, accepted
	return true
}

func refuse(_ *Config, s *State, i int) bool {
	if s.Remembers == accepted {
		return false
	}
	s.Remembers = refused
	s.Processes[i].PC, s.Processes[i].Got = got, refused
	return true
}

func callFails(_ *Config, s *State, i int) bool {
	if !s.fail() {
		return false
	}
	s.Processes[i].PC = failed
	return true
}

// callCut is an error of a call that the provider has executed, or executes later.
func callCut(cfg *Config, s *State, i int) bool {
	if !callFails(cfg, s, i) {
		return false
	}
	s.Landing = true
	return true
}

// giveBack ends the lease of a call that has returned.
func giveBack(_ *Config, s *State, i int) bool {
	s.giveBack(i)
	s.leave(i, true)
	return true
}

func (s *State) giveBack(i int) {
	if s.P && s.Attempt == s.Processes[i].Attempt {
		s.Lease = false
	}
}

// callTimesOut is the end of the call's context. The provider may execute it later.
func callTimesOut(cfg *Config, s *State, i int) bool {
	if !s.fail() {
		return false
	}
	s.Landing = true
	if cfg.Weak == TimeoutIsRefusal {
		s.Processes[i].PC, s.Processes[i].Got = got, refused
		return true
	}
	s.leave(i, true)
	return true
}

// commit2 is the effect of transaction 2. It reports false if another attempt has P.
func (s *State) commit2(cfg *Config, i int) bool {
	p := &s.Processes[i]
	if !s.P || s.C && !s.False || s.Attempt != p.Attempt && cfg.Weak != CompareNoAttempt {
		return false
	}
	if s.Attempt != p.Attempt {
		s.broke(7)
	}
	s.P, s.Lease, s.Answered = false, false, nothing
	s.C, s.False = true, false
	s.Settled++
	s.How |= 1 << p.Got
	return true
}

func settle(cfg *Config, s *State, i int) bool {
	if !s.commit2(cfg, i) {
		s.Trouble = true // it was past its lease
		s.Processes[i].Got = nothing
		s.leave(i, true)
		return true
	}
	s.done()
	s.leave(i, false)
	return true
}

// settleFails is a transaction 2 that fails. It needs no fault while the other process settles, too, since one of
// the two has lost its lock: the claim of the other one is in the way.
func settleFails(_ *Config, s *State, i int) bool {
	other := s.Processes[1-i].PC
	if other != got && other != settling && !s.fail() {
		return false
	}
	s.Processes[i].PC = storing
	return true
}

// settleCut is a COMMIT 2 that takes effect and is not answered. One that is lost is settleFails.
func settleCut(cfg *Config, s *State, i int) bool {
	after := *s
	if !after.fail() || !after.commit2(cfg, i) {
		return false
	}
	*s = after
	s.Processes[i].Got = nothing
	s.leave(i, true)
	return true
}

func store(cfg *Config, s *State, i int) bool {
	p := &s.Processes[i]
	switch {
	case cfg.Weak == ResultNotStored:
		s.giveBack(i)
	case s.P && s.Attempt == p.Attempt:
		s.Answered = p.Got
	default:
		p.Got = nothing // another attempt has P: it is told the same result
	}
	s.leave(i, true)
	return true
}

// storeCut is a result that is stored, of which its process does not know: it settles the result once more.
func storeCut(cfg *Config, s *State, i int) bool {
	p := &s.Processes[i]
	if cfg.Weak == ResultNotStored || !s.P || s.Attempt != p.Attempt || !s.fail() {
		return false
	}
	s.Answered, p.PC = p.Got, settling
	return true
}

// storeFails is a database that is away for too long. The result is lost, as with a process that dies.
func storeFails(_ *Config, s *State, i int) bool {
	if !s.fail() {
		return false
	}
	s.Processes[i].Got = nothing
	s.leave(i, true)
	return true
}
