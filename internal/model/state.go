package model

// callers is how many calls of Do there are at most; processes, how many processes.
const (
	callers   = 3
	processes = 2
)

// A State is all that a step depends on. It is comparable.
type State struct {
	Holder  uint8 // the owner that the engine has: a caller, from 1; 0 for none
	Node    node
	Granted uint8 // how many grants there were
	Mark    uint8 // who has marked the request as done, from 1
	Outages uint8 // how often the node went out
	Grants  [callers]Grant
	Procs   [processes]Process
	Row     Row
	Disk    Row          // what a crash of the database leaves of Row
	Unsafe  uint8        // callers whose commit is in Row and not in Disk
	Log     [callers]Row // what each of these has left
	Callers [callers]Caller
	Left    Budget
	Faults  uint8
	Path    path
	Several several
}

// A node is what the engine does.
type node uint8

const (
	up      node = iota
	refuses      // it answers, and grants no locks
	silent
)

// A Grant is a lock that the engine gave, or may have given, to the caller of its index.
// Callers of one process may have it one after the other.
type Grant struct {
	State grantState
	Order uint8 // 1 for the first
	Past  bool  // its local deadline has passed
	Gone  bool  // the engine lost it, or the deadline has passed, while it was in use
	Shut  bool  // after ErrUnknown: nobody of the process may have the key
	Late  bool  // its acquire may still be executed
	Local bool  // a place in the local queue; the engine knows nothing of it
	Twice bool  // a second caller has it already, to whom it was handed over
}

type grantState uint8

const (
	noGrant   grantState = iota
	held                 // by a caller
	lost                 // and its Locker knows
	abandoned            // not released, and not renewed
	orphaned             // nobody uses it, and the Locker releases it again
	ended                // released, or forgotten
)

// A Process is one Locker and one Guard.
type Process struct {
	Head         uint8 // of the local queue: a caller, from 1
	Dead         bool
	Out          bool // an outage is open
	Begins, Ends uint8
}

// A Row is the one row. Version 0 means that there is none.
type Row struct {
	Version  uint8
	Key      uint8 // who inserted it, which stands for its primary key
	Stamp    uint8 // who wrote its stamp
	Based    uint8 // a bit for each version that a commit was based on
	Twice    uint8 // those that two commits were based on
	Replaced bool  // somebody deleted it and inserted it again with the same version
	Deleted  bool
	Effects  uint8 // of the request whose claim the row is
	Answer   uint8 // whose answer to it is stored
	Purged   bool  // but no longer kept
}

// A Caller is one call of Do, with its transaction.
type Caller struct {
	PC    pc
	Res   result
	Grant uint8 // the owner whose grant it has, from 1
	Tx    txState

	Wrote     bool     // the transaction holds the row's lock
	Snap      reading  // of the transaction: what it began with
	Mem       reading  // what the product remembers that it saw first
	Base      uint8    // the version that its write is based on
	Took      uint8    // commits that took effect
	Swallowed bool     // it committed though its write was refused
	Broken    bool     // the database crashed under the COMMIT
	Tries     uint8    // attempts that were run again
	Ended     outcome  // of the last attempt
	Found     evidence // about its conflict
	Got       uint8    // whose answer it returns, from 1
	Refusing  bool     // it has rolled back, and stores a refusal
	Unmarked  bool     // it acquires the lock whether there is a mark or not
	Denied    bool     // it does not ask for the lock again, unless an outage ends before it has its place

	Leader   uint8 // of the crew that it is in, from 1
	Crew     uint8 // those whose changes it commits with its own, a bit each
	Closed   bool  // nobody joins its crew any more
	Shares   bool  // others have joined it
	Made     bool  // its change was made, or has failed
	Failed   bool  // that change has failed
	Apart    bool  // it shares no transaction any more
	Scatters bool  // its crew has no answer: each runs alone

	Pending verdict // the event that it is about to publish
	Events  uint8   // how many it published
	Alarm   bool    // one of them says that a lock failed
	Said    verdict // what the last one says

	// What only the invariants look at.
	Met         uint8   // callers that got another grant while this one had its own
	Reached     bool    // the database has answered a write
	Known       bool    // an answer has shown it how the row was under its lease
	Foreign     bool    // another's commit took effect while it had its lease
	Later       bool    // ... after it knew the row, and before its write
	Fresh       bool    // ... after the snapshot of an attempt, which is all that it had
	Stranger    bool    // ... by somebody who never asked for the lock
	Missed      bool    // ... and a deadlock has ended that attempt
	AskUnheard  bool    // the question who has the lock was not answered
	FreeUnheard bool    // nor the release
	Unanswered  bool    // nor the COMMIT
	DiedAt      pc      // where a kill met it
	Handed      bool    // it has handed its grant on
	Stored      bool    // the request was stored while it asked
	InVain      bool    // its acquire was not answered, or was held up
	Called      reading // how the row was when it came, of a caller who may be a member
	Count       uint8   // for how many callers its event stands
}

// A pc says what a caller does next.
type pc uint8

const (
	idle pc = iota
	queued
	asking
	denied  // by an engine that serves nobody: wants a place in the local queue
	marked  // reads the claim, as there is a mark
	aboard  // of a crew: its change is made, and answered, with its leader's
	granted // begins the transaction
	hanging // its BEGIN is not answered
	looked  // PostgreSQL: loads the row
	loaded  // sends its write
	writing // awaits the answer
	deadlocked
	refused // PostgreSQL: rolls back and reads the row again
	working // of a request: runs the operation, and stores its answer
	written // sends COMMIT
	committing
	unknown    // ends the session of the COMMIT that was not answered
	resolving  // reads what became of it
	doubting   // asks whether it still has the lock
	conflicted // asks who has the lock
	closing    // releases the lock
	freeing    // its release is on the way
	giving     // up: ErrUnknown
	reporting
	returning
	returned
	dead
	anywhere // of actions: whatever a caller does
)

// holds reports whether the caller has a lease that it has not given back.
func (c *Caller) holds() bool { return c.Grant != 0 && c.PC >= granted && c.PC <= giving }

type txState uint8

const (
	noTx    txState = iota
	active          // of a client that lives
	commits         // COMMIT has arrived
	dropped         // its client is gone, and the server will roll it back
)

// A reading is 0 for none, or what a read of the row has shown: its version + 1.
type reading uint8

func read(version uint8) reading { return reading(version + 1) }

// changedTo is protected.Reading.ChangedTo. The reads of an insert see no versions.
func (r reading) changedTo(now reading, versions bool) bool {
	if r == 0 {
		return false
	}
	if (r > 1) != (now > 1) {
		return true
	}
	return versions && now > r
}

type result uint8

const (
	open result = iota
	done
	failed    // a clean error that says nothing about the lock
	lostLease // ErrLost, rolled back
	duplicate
	replayed // the stored answer
	stale
	intercepted
	business // a conflict that says nothing about the lock
	unsure   // ErrUnknown
	unavailable
	busy
	claimed // ErrBusy, as another transaction has the request
	exists  // ErrExists: a row of the operation is another request's
	raced   // ErrBusy, as other callers were faster each time
	hurried // ErrBusy, as its own time has ended
	engaged // ErrBusy, as its own process has a caller with the key
)

// clean reports whether the result says that nothing was committed.
func (r result) clean() bool { return r >= failed && r != unsure }

type outcome uint8

const (
	undecided outcome = iota
	committed
	rolledBack
	refusedWrite
	gaveUp // to wait for the claim
	metRow // of another request
)

// evidence is what guard/verdict.go judges by.
type evidence struct {
	There, Changed, Expected, Lapsed bool
	Holder                           holder
	Verdict                          verdict
}

// gone reports whether the lock was found gone.
func (f *evidence) gone() bool { return f.Lapsed || f.Holder == other || f.Holder == none }

type holder uint8

const (
	notAsked holder = iota // or not answered
	self
	other
	none
)

type verdict uint8

const (
	noVerdict verdict = iota
	saysBusiness
	saysOvertaken
	saysRepeat
	saysOverlap
	saysLost
	saysUnknown
)

func start(cfg *Config) State {
	var s State
	s.Left = cfg.Budget
	s.Row = Row{Version: cfg.Row}
	s.Disk = s.Row
	for k := range s.Several.Rows {
		s.Several.Rows[k].Version = cfg.Row
	}
	for i, p := range cfg.Callers {
		if p == nobody {
			s.Callers[i].PC = returned
		}
	}
	return s
}

// owner returns what stands for caller i as the owner of a grant, or for event, row or key i.
func owner(i int) uint8 { return [callers]uint8{1, 2, 3}[i] }

func (s *State) proc(cfg *Config, i int) *Process { return &s.Procs[cfg.Callers[i]] }

func (s *State) grant(i int) *Grant { return &s.Grants[s.Callers[i].Grant-1] }

// spend takes one from a budget. It reports false if nothing is left.
func (s *State) spend(cfg *Config, budget *uint8) bool {
	if *budget == 0 || cfg.Faults > 0 && s.Faults >= cfg.Faults {
		return false
	}
	*budget--
	if cfg.Faults > 0 {
		s.Faults++
	}
	return true
}

// settle lets those return who are about to, and forgets what matters no more.
func (s *State) settle() {
	for i := range s.Callers {
		if c := &s.Callers[i]; c.PC == returning {
			c.PC = returned
			c.forget()
		}
	}
	s.forgetGrants()
}

// forget clears what no later step and no invariant of a call that has returned looks at.
func (c *Caller) forget() {
	*c = Caller{
		PC: c.PC, Res: c.Res, Grant: c.Grant, Tx: c.Tx, Wrote: c.Wrote, Base: c.Base, Took: c.Took, Swallowed: c.Swallowed,
		Alarm: c.Alarm, Met: c.Met, Reached: c.Reached, Unanswered: c.Unanswered,
		AskUnheard: c.AskUnheard, FreeUnheard: c.FreeUnheard, Got: c.Got, Refusing: c.Refusing, Crew: c.Crew,
	}
	if c.Tx == noTx {
		c.Base, c.Refusing, c.Crew = 0, false, 0
	}
}

// uses reports whether somebody has the grant of caller i, or reports what has become of it.
func (s *State) uses(i int) bool {
	return s.any(owner(i), (*Caller).holds) || s.any(owner(i), func(c *Caller) bool { return c.PC == reporting })
}

// forgetGrants clears what is left of grants that nobody has and the engine knows nothing of.
func (s *State) forgetGrants() {
	for i := range s.Grants {
		g := &s.Grants[i]
		if s.uses(i) || s.Holder == owner(i) || g.Late || g.State == abandoned {
			continue
		}
		*g = Grant{State: g.State}
		if g.State != noGrant {
			g.State = ended
		}
	}
}
