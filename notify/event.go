package notify

import (
	"slices"
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
)

// Verdict is the kind of a lock failure. The set is closed.
type Verdict string

const (
	// VerdictOverlap means that the database refused a write because another caller
	// wrote the same row while this one held the lock.
	VerdictOverlap Verdict = "overlap"
	// VerdictLost means that the lock was lost or had expired while or after the
	// operation ran.
	VerdictLost Verdict = "lost"
	// VerdictUnknownCommit means that the result of a COMMIT is unknown.
	VerdictUnknownCommit Verdict = "unknown_commit"
	// VerdictDegraded means that operations run without the lock because its engine does
	// not answer. Two events report an outage. The first reports its beginning, with
	// OutcomeUnknown and the Count 1. The second reports its end. With OutcomeCommitted,
	// its Count is how many operations were committed; if none was, it has
	// OutcomeRolledBack, and counts those that were rolled back. Operations that are
	// still running, and those of unknown outcome, are not counted. So a Count of
	// OutcomeCommitted may be 0.
	VerdictDegraded Verdict = "degraded"
	// VerdictUnavailable means that operations were refused because their lock could not
	// be acquired: the first layer could not be reached, did not answer, or rejected the
	// request. The Outcome is OutcomeRolledBack: nothing was changed. The Count is how
	// many operations the instance has refused on this node since its last such event.
	// The Key and the trace are those of the first of them. There is no Owner.
	VerdictUnavailable Verdict = "unavailable"
	// VerdictCommitLost means that the database has lost commits that it had acknowledged: their
	// requests are missing since a failover, a restart or a restore. The Count is how many commits
	// of the instance were lost, as far as it remembers them, and Lost describes them. The Outcome
	// is OutcomeUnknown: a request that has come again may have taken effect again. There is no
	// Key, Place or Owner.
	VerdictCommitLost Verdict = "commit_lost"
	// VerdictDeadLetter means that a message, which an operation has sent, became a dead letter: it
	// waits until somebody decides. Message describes it, and the Key is its key. The Outcome is
	// OutcomeCommitted: the operation itself has taken effect. If very many messages of a topic become dead letters
	// together, the Count of the last event is how many it stands for, and it describes one of them.
	// There is no Place or Owner.
	VerdictDeadLetter Verdict = "dead_letter"
	// VerdictUndecided means that nobody knows what another service has made of a request of
	// guard.Call, and that Belay does not call again: a person has to ask that service. Call describes
	// the request, and the Key is its key. The Outcome is OutcomeUnknown. There is no Place or Owner.
	VerdictUndecided Verdict = "undecided"
)

// Outcome is the outcome of the operation. The set is closed.
type Outcome string

const (
	OutcomeCommitted  Outcome = "committed"   // its changes are in the database
	OutcomeRefused    Outcome = "refused"     // the database refused a statement; rolled back
	OutcomeRolledBack Outcome = "rolled_back" // rolled back before the database had to refuse
	OutcomeUnknown    Outcome = "unknown"     // not known
)

// Holder is the holder of the key after the conflict, according to the first layer,
// from the view of the refused caller. The set is closed.
type Holder string

const (
	HolderSelf    Holder = "self"    // this caller: somebody wrote without a valid lock
	HolderOther   Holder = "other"   // another caller
	HolderNone    Holder = "none"    // no holder
	HolderUnknown Holder = "unknown" // the first layer did not answer
)

// Loss is the way in which a lock was lost, as its holder found. The set is closed.
type Loss string

const (
	LossExpired   Loss = "expired"   // it was not renewed in time
	LossUnrenewed Loss = "unrenewed" // it expired while renewals went without an answer
	LossGone      Loss = "gone"      // it was deleted, or taken by another owner, before it expired
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

// LostCommits describes commits that a database has lost. Times are by the caller's clock.
type LostCommits struct {
	FirstAt time.Time `json:"first_at"` // when the first of them was acknowledged
	LastAt  time.Time `json:"last_at"`  // when the last of them was acknowledged
	Server  string    `json:"server"`   // the server that acknowledged the last of them: its address and ids
	Now     string    `json:"now"`      // the server that lacks them; equal to Server if that was restarted
}

// DeadLetter describes a message that became a dead letter. StoredAt is by the database's clock.
type DeadLetter struct {
	ID        string    `json:"id"`        // of the message
	Topic     string    `json:"topic"`     // of the message
	StoredAt  time.Time `json:"stored_at"` // when the message was stored
	Attempts  int       `json:"attempts"`  // how often it was tried and not accepted
	Undecided bool      `json:"undecided"` // it was not accepted in time, and may have taken effect; otherwise its route has rejected it
}

// UndecidedCall describes a request whose call to another service is undecided. Times are by the
// database's clock.
type UndecidedCall struct {
	ID        string    `json:"id"`        // that all calls had: the other service knows it
	Operation string    `json:"operation"` // of the request
	Since     time.Time `json:"since"`     // when the reservation was made
	Until     time.Time `json:"until"`     // when the last call could begin
	Tries     int       `json:"tries"`     // calls that may have begun
}

// Event reports one failure of the first layer, of the database, or of a message. It carries names and times of
// the operation, never the values of a row. The tags name the members of its JSON, which
// has TTL in whole milliseconds and times in UTC.
type Event struct {
	ID string `json:"-"` // UUIDv7, fixed when the event is built and kept on every path; printable ASCII

	Verdict  Verdict   `json:"verdict"`
	Outcome  Outcome   `json:"outcome"`
	Service  string    `json:"service"`            // the service that reports
	Instance string    `json:"instance,omitempty"` // the instance of that service
	Key      string    `json:"key,omitempty"`      // the lock's key
	Keys     []string  `json:"keys,omitempty"`     // all keys that the operation held, if there were several
	Table    string    `json:"table,omitempty"`    // the table of the refused row; empty if none was refused
	Index    []string  `json:"index,omitempty"`    // the columns that identify the row
	Versions *Versions `json:"versions,omitempty"` // set when an update found another version

	Lost    *LostCommits `json:"lost,omitempty"`    // set for VerdictCommitLost
	Message *DeadLetter  `json:"message,omitempty"` // set for VerdictDeadLetter

	Call *UndecidedCall `json:"call,omitempty"` // set for VerdictUndecided

	Owner      string        `json:"owner,omitempty"`              // the owner id of the lock that failed
	Token      int64         `json:"token,omitempty,string"`       // its fencing token; 0 = none; a string, as JSON numbers lose digits above 2^53
	FirstToken int64         `json:"first_token,omitempty,string"` // the Token of the instance's first caller since the grant; 0 = none before
	AcquiredAt time.Time     `json:"acquired_at,omitzero"`         // when the lock was granted, by the caller's clock
	TTL        time.Duration `json:"ttl_ms,omitempty"`             // how long a grant lasts without renewal
	Deadline   time.Time     `json:"deadline,omitzero"`            // when the lease ends without another renewal
	Loss       Loss          `json:"loss,omitempty"`               // how the lock was lost; empty if it was not

	CaughtAt         time.Time `json:"caught_at"`                    // when the failure was detected, by the caller's clock
	Place            Place     `json:"place,omitzero"`               // where the lock was kept, or would have been
	HolderAtConflict Holder    `json:"holder_at_conflict,omitempty"` // empty where there was no conflict
	HolderOwner      string    `json:"holder_owner,omitempty"`       // the owner id, if it is another's

	Count   int    `json:"count"`              // how many like failures this event stands for, at least 1, but see VerdictDegraded
	TraceID string `json:"trace_id,omitempty"` // W3C trace id; empty if none
	Library string `json:"library,omitempty"`  // version of the library that built the event

	Trace Trace `json:"-"` // of the operation; an invalid trace context is not carried
}

// Trace is a W3C trace context. In the JSON of an Event it is the CloudEvents
// extension for distributed tracing.
type Trace struct {
	Parent string // traceparent: version, trace id, span id and flags, in hex
	State  string // tracestate: additions of vendors; may be empty
}

// ErrInvalidEvent is matched by every error that Validate, MarshalJSON and
// UnmarshalJSON return.
var ErrInvalidEvent = cloudevent.ErrInvalid

// Validate reports the first field that breaks the contract of an event.
func (e *Event) Validate() error {
	if err := cloudevent.CheckID(e.ID); err != nil {
		return err
	}
	switch {
	case e.Service == "":
		return cloudevent.Invalid("service is empty")
	case !slices.Contains(verdicts, e.Verdict):
		return cloudevent.Invalid("verdict %.40q is unknown", string(e.Verdict))
	case !slices.Contains(outcomes, e.Outcome):
		return cloudevent.Invalid("outcome %.40q is unknown", string(e.Outcome))
	case !slices.Contains(holders, e.HolderAtConflict):
		return cloudevent.Invalid("holder_at_conflict %.40q is unknown", string(e.HolderAtConflict))
	case e.CaughtAt.IsZero():
		return cloudevent.Invalid("caught_at is missing")
	case !cloudevent.Writable(e.CaughtAt):
		return cloudevent.Invalid("caught_at is outside the years 0 to 9999")
	case !cloudevent.Writable(e.AcquiredAt):
		return cloudevent.Invalid("acquired_at is outside the years 0 to 9999")
	case !cloudevent.Writable(e.Deadline):
		return cloudevent.Invalid("deadline is outside the years 0 to 9999")
	case !slices.Contains(losses, e.Loss):
		return cloudevent.Invalid("loss %.40q is unknown", string(e.Loss))
	case e.Lost != nil && (!cloudevent.Writable(e.Lost.FirstAt) || !cloudevent.Writable(e.Lost.LastAt)):
		return cloudevent.Invalid("a time of lost is outside the years 0 to 9999")
	case e.Message != nil && !cloudevent.Writable(e.Message.StoredAt):
		return cloudevent.Invalid("stored_at of message is outside the years 0 to 9999")
	case e.Call != nil && (!cloudevent.Writable(e.Call.Since) || !cloudevent.Writable(e.Call.Until)):
		return cloudevent.Invalid("a time of call is outside the years 0 to 9999")
	case e.TTL < 0:
		return cloudevent.Invalid("ttl %v is negative", e.TTL)
	case e.Count == 0 && e.Verdict == VerdictDegraded && e.Outcome == OutcomeCommitted:
	case e.Count < 1:
		return cloudevent.Invalid("count %d is below 1", e.Count)
	}
	return nil
}

// The values that are valid.
var (
	verdicts = []Verdict{VerdictOverlap, VerdictLost, VerdictUnknownCommit, VerdictDegraded, VerdictUnavailable, VerdictCommitLost, VerdictDeadLetter, VerdictUndecided}
	outcomes = []Outcome{OutcomeCommitted, OutcomeRefused, OutcomeRolledBack, OutcomeUnknown}
	losses   = []Loss{"", LossExpired, LossUnrenewed, LossGone, LossMaxHold}
	holders  = []Holder{"", HolderSelf, HolderOther, HolderNone, HolderUnknown}
)
