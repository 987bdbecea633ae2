package notify

import (
	"errors"
	"fmt"
	"time"
)

// Verdict says what went wrong with the lock. The set is closed.
type Verdict string

const (
	// Overlap: the database refused a write because another caller wrote the
	// same row while this one held the lock.
	Overlap Verdict = "overlap"
	// Lost: the lock was found gone, or was no longer believed in, while or
	// after the operation ran.
	Lost Verdict = "lost"
	// UnknownCommit: the outcome of a COMMIT could not be found out.
	UnknownCommit Verdict = "unknown_commit"
	// Degraded: operations run without the lock because it can't be asked. Two
	// events report an outage: its begin, with the Outcome Unknown and the Count
	// 1, and its end. The end's Count is of operations: of those that were
	// committed, with the Outcome Committed, or, with the Outcome RolledBack, of
	// those that were rolled back if none was. Operations that still ran then, and
	// those of unknown outcome, are in neither, so a Count of Committed may be 0.
	Degraded Verdict = "degraded"
	// Unavailable: operations were refused because their lock could not be acquired:
	// the first layer could not be reached, did not answer, or rejected the request.
	// The Outcome is RolledBack: nothing was changed. The Count is how many operations
	// the instance has refused on this node since its last such event, and the Key and
	// the trace are those of the first of them. There is no Owner, as there was no lock.
	Unavailable Verdict = "unavailable"
)

// Outcome says what became of the operation. The set is closed.
type Outcome string

const (
	Committed  Outcome = "committed"   // its changes are in the database
	Refused    Outcome = "refused"     // the database refused a statement; rolled back
	RolledBack Outcome = "rolled_back" // rolled back before the database had to refuse
	Unknown    Outcome = "unknown"     // could not be found out
)

// Relation says who held the key, as the first layer told it after the
// conflict, seen from the caller that was refused. The set is closed.
type Relation string

const (
	HolderSelf    Relation = "self"    // this caller: somebody wrote without a valid lock
	HolderOther   Relation = "other"   // another caller
	HolderNone    Relation = "none"    // nobody
	HolderUnknown Relation = "unknown" // the first layer could not be asked
)

// Loss says how a lock was lost, as its holder found out. The set is closed.
type Loss string

const (
	LossExpired   Loss = "expired"   // it was not renewed in time
	LossUnrenewed Loss = "unrenewed" // not either, though that was tried: renewals went without an answer
	LossGone      Loss = "gone"      // it was not there, or another's, before its time was up
	LossMaxHold   Loss = "max_hold"  // the limit for one holder ended it
)

// Place is where a lock is kept: a node (host:port) and, on a Redis Cluster,
// a hash slot. Slot is -1 where there are no slots. Entry is the lock's name there,
// with the prefix of the service; empty if it is the key itself.
type Place struct {
	Node  string `json:"node"`
	Slot  int    `json:"slot"`
	Entry string `json:"entry,omitempty"`
}

// Versions are the version a caller expected in a row and the one it found.
type Versions struct {
	Expected int64 `json:"expected"`
	Found    int64 `json:"found"`
}

// Event reports one failure of the first layer. It carries names and times of
// the operation, never the values of a row.
type Event struct {
	ID       string // UUIDv7, fixed when the event is built and kept on every path; printable ASCII
	Service  string // the service that reports
	Instance string // the instance of that service
	Verdict  Verdict
	Outcome  Outcome
	Key      string // the lock's key

	Table    string    // the table whose row was refused; empty if none was
	Index    []string  // the columns that identify the row
	Versions *Versions // set when an update found another version

	Owner            string        // the owner id of the lock that failed
	Token            int64         // its fencing token; 0 = none
	FirstToken       int64         // of the first caller of the instance who had it since it was granted; 0 = none before
	AcquiredAt       time.Time     // when the lock was granted, by the caller's clock
	TTL              time.Duration // how long a grant lasts; carried in whole milliseconds
	Deadline         time.Time     // until when it could be believed in, without another renewal
	Loss             Loss          // empty if it was not found lost
	CaughtAt         time.Time     // when the failure was noticed, by the caller's clock
	Place            Place         // where the lock was kept, or would have been
	HolderAtConflict Relation      // empty where there was no conflict
	HolderOwner      string        // the owner id then, when it is another's

	Count   int    // how many like failures this event stands for, at least 1, but see Degraded
	TraceID string // W3C trace id; empty if none
	Library string // version of the library that built the event

	Trace Trace // of the operation; what is no trace context is not carried
}

// ErrInvalidEvent is matched by every error that Validate, MarshalJSON and
// UnmarshalJSON return.
var ErrInvalidEvent = errors.New("notify: invalid event")

// Validate reports the first field that breaks the contract of an event.
func (e *Event) Validate() error {
	switch {
	case checkID(e.ID) != nil:
		return checkID(e.ID)
	case e.Service == "":
		return invalid("service is empty")
	case !e.Verdict.valid():
		return invalid("verdict %.40q is unknown", string(e.Verdict))
	case !e.Outcome.valid():
		return invalid("outcome %.40q is unknown", string(e.Outcome))
	case e.HolderAtConflict != "" && !e.HolderAtConflict.valid():
		return invalid("holder_at_conflict %.40q is unknown", string(e.HolderAtConflict))
	case e.CaughtAt.IsZero():
		return invalid("caught_at is missing")
	case !writable(e.CaughtAt):
		return invalid("caught_at is outside the years 0 to 9999")
	case !writable(e.AcquiredAt):
		return invalid("acquired_at is outside the years 0 to 9999")
	case !writable(e.Deadline):
		return invalid("deadline is outside the years 0 to 9999")
	case e.Loss != "" && !e.Loss.valid():
		return invalid("loss %.40q is unknown", string(e.Loss))
	case e.TTL < 0:
		return invalid("ttl %v is negative", e.TTL)
	case e.Count == 0 && e.Verdict == Degraded && e.Outcome == Committed:
	case e.Count < 1:
		return invalid("count %d is below 1", e.Count)
	}
	return nil
}

func checkID(id string) error {
	switch {
	case id == "":
		return invalid("id is empty")
	case len(id) > 255:
		return invalid("id is longer than 255 bytes")
	case !printable(id):
		return invalid("id holds a character outside printable ASCII")
	}
	return nil
}

// printable reports whether s is ASCII without spaces and control characters:
// what every database column and message header keeps unchanged.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// writable reports whether RFC 3339 can express t in UTC.
func writable(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 0 && year <= 9999
}

func (v Verdict) valid() bool {
	switch v {
	case Overlap, Lost, UnknownCommit, Degraded, Unavailable:
		return true
	}
	return false
}

func (o Outcome) valid() bool {
	switch o {
	case Committed, Refused, RolledBack, Unknown:
		return true
	}
	return false
}

func (l Loss) valid() bool {
	switch l {
	case LossExpired, LossUnrenewed, LossGone, LossMaxHold:
		return true
	}
	return false
}

func (r Relation) valid() bool {
	switch r {
	case HolderSelf, HolderOther, HolderNone, HolderUnknown:
		return true
	}
	return false
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalidEvent, fmt.Sprintf(format, args...))
}
