package model

import (
	"fmt"
	"slices"
)

// A Sight is a kind of step that a run of the code shows from outside: at the engine, at the
// database, and to the caller.
type Sight string

// The sights. Those of a lock name the caller who asked for it, whoever has it now.
const (
	Overruns       Sight = "is at its change while its crew goes on"
	Parts          Sight = "acquires the lock for itself"
	Queues         Sight = "is about to wait for the lock"
	Granted        Sight = "is granted the lock"
	Held           Sight = "finds the lock held"
	GrantUnheard   Sight = "is granted the lock, and the answer is lost"
	AcquireLost    Sight = "gets no answer to its acquire"
	Unserved       Sight = "asks for the lock in vain"
	AcquireLate    Sight = "its late acquire is executed"
	Renewed        Sight = "its lock is renewed"
	RenewedGone    Sight = "a renewal finds its lock gone"
	RenewalLost    Sight = "a renewal is not answered"
	Deadline       Sight = "the local deadline of its lock passes"
	Expired        Sight = "its lock expires"
	LockLost       Sight = "its lock is lost"
	SendsRelease   Sight = "sends the release of a lock"
	Released       Sight = "gives the lock back"
	ReleasedGone   Sight = "gives back a lock that is gone"
	ReleaseUnheard Sight = "gives the lock back, and the answer is lost"
	ReleaseUnsent  Sight = "gives the lock back, and the request is lost"
	OrphanReleased Sight = "a Locker releases its lock, which nobody uses"
	OrphanAbsent   Sight = "a Locker releases its lock, which is gone"
	OrphanUnheard  Sight = "a Locker releases its lock, and gets no answer"
	Inspected      Sight = "asks who has the lock"
	InspectUnheard Sight = "asks who has the lock, and gets no answer"
	NodeSilent     Sight = "the node of the lock falls silent"
	NodeRefuses    Sight = "the node of the lock grants no locks any more"
	NodeBack       Sight = "the node of the lock is back"
	OutageBegins   Sight = "reports that an outage has begun"
	OutageEnds     Sight = "its process finds that locks are granted again"
	OutageReported Sight = "its process reports that an outage has ended"
	Begins         Sight = "begins a transaction"
	BeginLost      Sight = "gets no answer to its BEGIN"
	Reads          Sight = "reads the row"
	ReadLost       Sight = "gets no answer to its read"
	SendsWrite     Sight = "sends its write"
	Writes         Sight = "has its write answered"
	WriteRefused   Sight = "has its write refused"
	Deadlocked     Sight = "is the victim of a deadlock"
	WriteLost      Sight = "gets no answer to its write"
	WriteLeft      Sight = "cancels its write"
	SendsCommit    Sight = "sends COMMIT"
	Commits        Sight = "its COMMIT is executed"
	CommitsLate    Sight = "its COMMIT is executed late, or its session has ended"
	CommitAnswered Sight = "has its COMMIT answered"
	CommitRefused  Sight = "has its COMMIT refused"
	CommitLost     Sight = "its COMMIT is lost"
	CommitUnheard  Sight = "gets no answer to its COMMIT"
	Flushed        Sight = "its commit is on the disk"
	Marked         Sight = "finds a mark that its request is done"
	ReadsClaim     Sight = "reads the claim of its request"
	ClaimTaken     Sight = "waits in vain for the end of the transaction that has its claim"
	Changes        Sight = "makes its change"
	Enters         Sight = "begins its operation"
	Works          Sight = "has stored its answer"
	WorkLeft       Sight = "cancels a statement of its operation"
	Killed         Sight = "its process is killed"
	Crashed        Sight = "the database crashes"
	Publishes      Sight = "publishes an event"
	Returns        Sight = "returns"
	Rests          Sight = "the servers are looked at"
)

// A Seen is one step that was seen. Texts are as in a [Story].
type Seen struct {
	What    Sight
	Who     int    // the caller; of a lock, who asked for it
	Key     int    // of a lock, or a row, where there are several
	Of      int    // of a release by a caller: who asked for the lock; of a repeat: whose answer it returns
	Says    string // the verdict of an event, what a Do returns, or who has the lock
	Holder  int    // of Rests: who asked for the lock that the engine has, -1 for nobody
	Version int    // of Rests: that of the row
	Count   int    // of an event: for how many callers it stands; of OutageReported: how many ends were reported
	Effects int    // of Rests: how often the operation of the request has taken effect
	Marked  bool   // of Rests: whether the engine has a mark
}

func (x Seen) String() string {
	switch {
	case x.What == Rests:
		who := "nobody"
		if x.Holder >= 0 {
			who = names[x.Holder]
		}
		return fmt.Sprintf("the engine has a lock of %s, mark: %t, the row's version is %d, effects: %d%s", who, x.Marked, x.Version, x.Effects, x.key())
	case slices.Contains([]Sight{Crashed, NodeSilent, NodeRefuses, NodeBack}, x.What):
		return string(x.What)
	case x.Says != "":
		return fmt.Sprintf("%s %s: %s%s", names[x.Who], x.What, x.Says, x.key())
	}
	return fmt.Sprintf("%s %s%s", names[x.Who], x.What, x.key())
}

// key names another key than the first.
func (x Seen) key() string {
	if x.Key == 0 {
		return ""
	}
	return fmt.Sprintf(" (the %s key)", keyNames[x.Key])
}
