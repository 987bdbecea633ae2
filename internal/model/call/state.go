package call

// A pc is the step of Run at which a process is.
type pc uint8

const (
	idle      pc = iota
	locked       // it has the lock of the request, or believes so
	missed       // it has found no C
	fresh        // it has found neither C nor P
	inserted     // its transaction 1 has inserted P
	reserving    // its transaction 1 has looked for C behind that
	stale        // it has found P with a lease that is over
	ready        // P is its own: it may call
	calling      // the provider has its call
	failed       // its call has failed, or has not begun, and its lease is to be ended
	got          // it has the result
	settling     // it has read a result from P
	storing      // transaction 2 has failed, the result is to be stored
	returned
	dead
)

// Results of the provider.
const (
	nothing uint8 = iota
	accepted
	refused
)

const processes = 2

// A Process is one that serves the request.
type Process struct {
	PC      pc
	Attempt uint8 // its own, or the one that it has read
	Got     uint8 // the result that it has
	Over    bool  // its lease has ended
	Bytes   uint8 // what it would send: 1, or 2 of another program or another input
	Begun   bool  // its call began before Until
	Counted bool  // its result has been counted as known
}

// A State is what the processes, the database, the lock and the provider are at.
type State struct {
	Processes [processes]Process

	// belay_pending
	P        bool
	Attempt  uint8
	Lease    bool // it has not ended
	Answered uint8
	Print    uint8
	Tx1      uint8 // 1 + the process whose transaction 1 has inserted P

	// belay_once
	C     bool
	False bool // C stands for what is not done

	Lock  uint8 // 1 + its holder, 0 without one
	Past  bool  // Until has passed
	Next  uint8 // the last attempt
	Ended bool  // the claim has been purged as planned: nothing more is promised

	// the provider
	Remembers uint8
	Landing   bool // a call is on its way whose caller has gone
	Charges   uint8
	Sent      uint8 // a bit for each of the Bytes that it was sent

	// what has happened
	Reserved, Settled uint8
	How               uint8 // a bit for each result that was settled
	Known             bool  // a process has failed to settle a result that it had
	Trouble           bool  // a fault other than a lost lock has happened
	Broken            uint16

	Repeats, Faults uint8 // that are left
}

// broke notes that an invariant is broken.
func (s *State) broke(invariant int) { s.Broken |= 1 << invariant }

// breaks reports whether an invariant is broken, 0 is any.
func (s *State) breaks(invariant int) bool {
	if invariant == 0 {
		return s.Broken != 0
	}
	return s.Broken&(1<<invariant) != 0
}

// Invariants are what must hold, by their number.
var Invariants = [...]string{
	1:  "a request is done once: one claim, one charge",
	2:  "all calls of a request have one id and one content",
	3:  "the reservation and the settlement are committed at most once, and the settlement is of the provider's result",
	4:  "no call begins when the result is known",
	5:  "no call begins behind Until",
	6:  "two calls overlap only if the first is past its lease",
	7:  "an attempt that P does not have calls nobody and changes nothing",
	8:  "a reservation has P or C",
	9:  "belay_once has only what is done",
	10: "P ends by a repeat, or is listed; a lost lock alone leaves nothing open",
	11: "nobody is told that a request is done while there is P",
}

// A Weakness is a rule that is dropped.
type Weakness uint8

// The first eight are the mutants.
const (
	None                 Weakness = iota
	TakeoverWithoutLease          // P is taken over though its lease has not ended
	NoSecondLook                  // transaction 1 does not look for C behind the INSERT of P
	CompareNoAttempt              // transaction 2 does not compare the attempt
	UntilIgnored                  // calls begin behind Until
	ResultNotStored               // a result that could not be settled is forgotten
	FallThrough                   // a process goes on whose takeover has found another attempt
	CallBeforeResolve             // a process calls before it knows that COMMIT 1 took effect
	PendingPurged                 // a Purger deletes P
	PendingInOnce                 // P is a row of belay_once
	CallEndsWithLock              // the context of the call ends with the lock
	NoPrint                       // a request without a Print is accepted
	PrintNotKept                  // P has no Print
	TimeoutIsRefusal              // a call whose time is over counts as refused
	ClaimPurgedEarly              // the Purger keeps claims for a shorter time than Until
)

// A Config is how small the model is.
type Config struct {
	Repeats, Faults uint8
	Other           bool // the second process would send something else
	Weak            Weakness
}

func start(cfg *Config) State {
	s := State{Repeats: cfg.Repeats, Faults: cfg.Faults}
	for i := range s.Processes {
		s.Processes[i].Bytes = 1
	}
	if cfg.Other {
		s.Processes[1].Bytes = 2
	}
	return s
}

// fail spends a fault.
func (s *State) fail() bool {
	if s.Faults == 0 {
		return false
	}
	s.Faults--
	s.Trouble = true
	return true
}

// leave is the end of a Run, whose lock is released.
func (s *State) leave(i int, open bool) {
	if open && !s.Trouble {
		s.broke(10)
	}
	p := &s.Processes[i]
	if p.Got != nothing && open && !p.Counted {
		s.Known = true
	}
	if s.Lock == holder(i) {
		s.Lock = 0
	}
	*p = Process{PC: returned, Bytes: p.Bytes}
}

// check notes what a state breaks by itself.
func (s *State) check() {
	switch {
	case s.Ended:
	case s.Reserved > 0 && !s.P && !s.C:
		s.broke(8)
	}
	if s.C && s.False {
		s.broke(9)
	}
	if s.Charges > 1 || s.Settled > 1 {
		s.broke(1)
	}
	if s.Reserved > 1 || s.Settled > 1 || s.How == 1<<accepted|1<<refused {
		s.broke(3)
	}
	if s.How == 1<<refused && s.Charges > 0 || s.How == 1<<accepted && s.Charges == 0 {
		s.broke(3)
	}
	if s.Sent == 1<<1|1<<2 {
		s.broke(2)
	}
}
