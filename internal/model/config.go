package model

// A Config is a system to search: who runs what on which database, and what may fail.
type Config struct {
	Name     string
	Postgres bool // a transaction's number says what became of it, and no snapshot can be read after a conflict
	Update   bool // the operation updates the row; otherwise it inserts it
	Brought  bool // the update came with version 1
	Stamp    bool // the row has a dbguard.Stamp
	Keyed    bool // the database generates the row's primary key
	Row      uint8
	Callers  [callers]uint8 // the process of each, and nobody for none
	Budget   Budget
	Faults   uint8 // of all budgets at most; 0: no bound
	Long     bool  // only in `make model`

	Refuse  bool // callers do not wait for a lock: ErrBusy
	DBOnly  bool // while the engine is out, the database alone guards
	Changed bool // the isolation level of the sessions was changed past gorm: no snapshot
	RawSQL  bool // the operation runs raw SQL before its row becomes protected
	Swallow bool // the operation swallows a conflict
	Shared  bool // the row has another key, too, so whoever changes it may have that one's lock
	Path    bool // of the events, instead of callers

	Serves  Service // how the operation serves a request, whose claim is the row then
	Retries uint8   // how often that operation runs again which the database has rolled back
	Marks   bool    // the engine remembers that the request is done
	Apart   bool    // the second process serves the request under another key, whose lock does not fail

	Crew bool // the callers of a process who wait for the lock share a transaction

	Keys    [processes]uint8 // instead: the set of keys that the caller of each process wants
	Swapped bool             // the caller of the second process names its keys in the other order

	Weak Weakness
}

// A Service is how an operation serves a request. It has an effect, which is no row of the model.
type Service uint8

const (
	NoRequest Service = iota
	ByFor             // nothing is stored but the claim
	ByOnce            // the answer is stored, too
	Declined          // the operation returns Refuse, after it has written: the answer is stored without the effect
)

// request reports whether the row is the claim of a request.
func (cfg *Config) request() bool { return cfg.Serves != NoRequest }

// A Budget is how often each thing may happen.
type Budget struct {
	Lose, Lapse, Mute, Cut, Deadlock, Kill, Crash, Late, Outage, Write, Delete, Replace, Purge, Restore, Fail, Short, Meet, Hang uint8
}

// nobody stands for no process in Config.Callers.
const nobody = 9

// A Weakness breaks the protocol on purpose. The tests show that an invariant sees it.
type Weakness struct {
	GrantTwice           bool // the engine grants a lock that another has
	NoUniqueIndex        bool // the database takes a second insert
	NoVersionCompare     bool // an update does not look at the version
	TrustEqualValues     bool // a row that is as it would have been written proves the commit
	CutIsRolledBack      bool // a COMMIT without an answer is taken for rolled back
	LeaveSession         bool // the session of the lost COMMIT is not ended, and its transaction not awaited
	TrustVisible         bool // what is visible counts as durable
	NoReleaseQuestion    bool // what the release of the lock says is ignored
	NoComparison         bool // a refused write does not compare the row with what was seen first
	HideSwallowed        bool // a conflict that the operation swallows is not judged
	ForgetWrites         bool // an attempt forgets that its own write succeeded
	ForgetLoss           bool // a lock that was handed over is not looked at again
	SnapshotBeforeGrant  bool // the transaction begins before the lock is granted
	LaggingNode          bool // the transaction begins on a node that lacks the last commit
	JudgeWithoutEvidence bool // each refused write is taken for a repeat
	ReleaseUnknown       bool // ErrUnknown releases the key
	OpenUnknown          bool // ErrUnknown keeps the lock, and lets the next caller of the process in
	TwoEvents            bool // the release reports what the conflict has reported
	ForgetOrphan         bool // a lock that nobody uses is released only while it is remembered
	ProbeReads           bool // the end of an outage is found by a read
	DeleteByID           bool // the relay deletes a row by its id alone
	AckBeforeStore       bool // the monitor acknowledges before it stores
	PoolUnknown          bool // a connection whose COMMIT was not answered goes back to the pool
	ClaimLast            bool // the operation runs before its claim is inserted
	TrustMark            bool // a mark in the engine answers for the database
	JudgeForeign         bool // a claim that was made under other keys is judged by this one's lock
	PurgeIsChange        bool // a claim that was purged has been changed by another
	KeepRefused          bool // a refusal is committed with what the operation has written
	LateMember           bool // a caller joins a crew after the begin of its transaction
	TwinJoins            bool // two inserts of one row are one
	AnswerBeforeCommit   bool // members get their answers before the COMMIT
	OneVersion           bool // the changes of a crew raise the version by one
	CountOne             bool // the event of a crew stands for its leader
	AnyOrder             bool // keys are acquired in any order
	KeepSome             bool // who is refused one key keeps those before it
	FirstLeaseOnly       bool // only the lock on the first key is looked at
	NameFirst            bool // an event names the first key
	RowIsRequest         bool // a row that another request has inserted is taken for the claim
	OvertakenIsBusiness  bool // what another caller has changed is a conflict of the business
	ShortIsOutage        bool // a caller whose own time ends blames the engine
	LeaderUnwatched      bool // the deadline of a crew's leader counts from its first change
}
