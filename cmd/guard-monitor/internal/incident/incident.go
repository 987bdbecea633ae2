// Package incident groups lock failures into incidents, and explains them.
package incident

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// ErrNotFound is returned for an incident, a silence or an event that the store
// does not have.
var ErrNotFound = errors.New("incident: not found")

// Cause says why locks failed. The set is closed.
type Cause string

const (
	Failover        Cause = "failover"         // another node took over, without the lock
	Restart         Cause = "restart"          // a Redis process ended, and its memory with it
	Eviction        Cause = "eviction"         // Redis evicted keys to stay below its memory limit
	Flushed         Cause = "flushed"          // FLUSHALL or FLUSHDB emptied a Redis node
	Deleted         Cause = "deleted"          // a command removed keys from a Redis node, or made them expire
	Partition       Cause = "partition"        // a living Redis node was cut off, or stood still
	Overrun         Cause = "overrun"          // the holder did not renew in time, with Redis healthy
	DegradedPeer    Cause = "degraded_peer"    // another instance worked without the lock
	Bypass          Cause = "bypass"           // a caller wrote without a valid lock, and nothing else explains it
	Unreachable     Cause = "unreachable"      // a service could not reach a Redis that was well
	UnknownCommit   Cause = "unknown_commit"   // the database did not say whether it committed
	CommitLost      Cause = "commit_lost"      // the database has lost commits that it had acknowledged
	DeadLetter      Cause = "dead_letter"      // messages were rejected, and wait for a decision
	Undecided       Cause = "undecided"        // messages may have taken effect, and wait for a decision
	CallUndecided   Cause = "call_undecided"   // calls to another service may have taken effect, and wait for a decision
	HeartbeatSilent Cause = "heartbeat_silent" // a service reports nothing, not even that it lives
	Unknown         Cause = "unknown"          // the evidence does not suffice for any of these
)

// Causes are all causes.
var Causes = []Cause{
	Failover, Restart, Eviction, Flushed, Deleted, Partition, Overrun, DegradedPeer, Bypass, Unreachable, UnknownCommit,
	CommitLost, DeadLetter, Undecided, CallUndecided, HeartbeatSilent, Unknown,
}

// ofDatabase reports whether the cause is about the database, wherever the lock is.
func (c Cause) ofDatabase() bool { return c == UnknownCommit || c == CommitLost || c.waits() }

// waits reports whether the cause is about messages, or calls, that wait for a decision.
func (c Cause) waits() bool { return c == DeadLetter || c == Undecided || c == CallUndecided }

// State says where an incident stands. The set is closed.
type State string

const (
	New        State = "new"        // began moments ago
	Ongoing    State = "ongoing"    // goes on
	Escalating State = "escalating" // goes on, and much faster than before
	Resolved   State = "resolved"   // quiet for a while
	Regressed  State = "regressed"  // was resolved, and came back
)

// States are all states.
var States = []State{New, Ongoing, Escalating, Resolved, Regressed}

// Open reports whether an incident in this state needs somebody's attention.
func (s State) Open() bool { return s != Resolved }

// Confidence says how far the evidence goes.
type Confidence string

const (
	Low    Confidence = "low"    // fits, but much else would, too
	Medium Confidence = "medium" // the likely explanation
	High   Confidence = "high"   // the evidence leaves little else
)

// Incident is a group of like lock failures.
type Incident struct {
	ID         string       `json:"id"` // UUIDv7
	Key        string       `json:"-"`  // what its events have in common: see GroupKey
	Service    string       `json:"service"`
	Cause      Cause        `json:"cause"`
	Cluster    string       `json:"cluster,omitempty"` // name of the watched Redis; empty if it is not known
	Shard      string       `json:"shard,omitempty"`   // slot ranges, as in 0-5460; empty where there are none
	Place      notify.Place `json:"place"`
	State      State        `json:"state"`
	Confidence Confidence   `json:"confidence"`

	FirstAt    time.Time `json:"first_at"`             // of the first event, by the reporting host's clock
	LastAt     time.Time `json:"last_at"`              // of the last event
	SeenAt     time.Time `json:"-"`                    // when the last event was taken in, by this host's clock
	UpdatedAt  time.Time `json:"updated_at"`           // when anything here last changed
	OpenedAt   time.Time `json:"opened_at"`            // when it began, or came back, by this host's clock
	ResolvedAt time.Time `json:"resolved_at,omitzero"` // zero while open
	Events     int64     `json:"events"`               // how many events
	Keys       int64     `json:"keys"`                 // how many different lock keys
	Effect     Effect    `json:"effect"`               // what became of the operations
	Regressed  int       `json:"regressed"`            // how often it came back after it was resolved

	Evidence []Evidence `json:"evidence"`
	Exemplar string     `json:"-"`       // ID of the event that the evidence is about
	DocLink  string     `json:"runbook"` // a file of the repository, docs/alerts/<cause>.md

	AckedBy  string    `json:"acked_by,omitempty"` // empty = not acknowledged; ends when the incident ends
	AckedAt  time.Time `json:"acked_at,omitzero"`
	Silences []Silence `json:"silences,omitempty"` // that hold for it when it is read, the newest first

	// MergedInto is the incident that took this one's events over when late
	// evidence showed that both are one.
	MergedInto string `json:"merged_into,omitempty"`
	// Rate is what State is judged from.
	Rate Rate `json:"-"`
}

// Received is an event as it is stored.
type Received struct {
	Seq      int64        `json:"seq"`                // order of arrival
	At       time.Time    `json:"received_at"`        // when it was stored
	Incident string       `json:"incident,omitempty"` // ID of its incident; empty = not grouped yet
	Sender   string       `json:"sender,omitempty"`   // who is known to have sent it; empty = nobody is
	Event    notify.Event `json:"event"`              // whole if the body was, else what the columns hold
}

// Severity is how urgent an incident is: critical if the outcome of some operations,
// of messages or of calls is unknown, if the database has lost some, if operations are refused and that goes on, or if a service is silent, else
// warning. What was critical stays so until it comes back: an alert whose labels change is
// another alert to those who receive it.
func (i Incident) Severity() string {
	if i.Effect.Unknown > 0 || i.Rate.critical() || slices.Contains(alwaysCritical, i.Cause) {
		return "critical"
	}
	return "warning"
}

var alwaysCritical = []Cause{HeartbeatSilent, CommitLost, Undecided, CallUndecided}

// Current is what became of the operations, with those alone as refused that were refused
// since the incident began or came back.
func (i Incident) Current() Effect {
	e := i.Effect
	if i.Regressed > 0 {
		e.Refused = i.Rate.Refused
	}
	return e
}

// Counts returns how many operations failed, had no lock or were refused since the incident
// began or came back.
func (i Incident) Counts() Counts {
	if i.Regressed > 0 {
		return i.Rate.Counts
	}
	return Counts{Failures: i.Effect.Failures, Without: i.Effect.Without, Refused: i.Effect.Refused}
}

// SeverityOf is the severity that one event gives an incident.
func SeverityOf(ev notify.Event) string {
	i := Incident{Effect: EffectOf(ev.Verdict, ev.Outcome, int64(ev.Count))}
	i.Rate.add(ev.CaughtAt, i.Effect)
	switch ev.Verdict {
	case notify.VerdictDeadLetter:
		i.Cause = ofLetter(ev)
	case notify.VerdictUndecided:
		i.Cause = CallUndecided
	default:
	}
	return i.Severity()
}

// keyVersion is raised when the grouping changes, so that old incidents keep
// what they have.
const keyVersion = "v1"

// GroupKey is what the events of one incident have in common: the version of
// the grouping, service, cause, Redis and shard.
func GroupKey(service string, cause Cause, cluster, shard string) string {
	return strings.Join([]string{
		keyVersion, keyEscaper.Replace(service), string(cause), keyEscaper.Replace(cluster), keyEscaper.Replace(shard),
	}, "|")
}

// keyEscaper escapes the separator of the parts of a grouping key.
var keyEscaper = strings.NewReplacer("%", "%25", "|", "%7C")

// DocLink returns where a cause is described.
func DocLink(c Cause) string { return "docs/alerts/" + string(c) + ".md" }

// MaxHeartbeats is how many heartbeats are kept, besides the last of each service.
const MaxHeartbeats = 10_000

// Heartbeat says that an instance of a service runs and can report.
type Heartbeat struct {
	Service    string        `json:"service"`
	Instance   string        `json:"instance"`
	At         time.Time     `json:"-"`           // by the clock of the instance
	Every      time.Duration `json:"-"`           // how often it beats
	ReceivedAt time.Time     `json:"received_at"` // by this host's clock
	Record     Record        `json:"-"`           // zero: it has one engine, or knows nothing
	Messages   Messages      `json:"-"`           // zero: it counts none
	Calls      Calls         `json:"-"`           // zero: it counts none
	Sender     string        `json:"-"`           // who is known to have sent it; not read from the store
}

// Clock is what heartbeats show of the clock of an instance.
type Clock struct {
	Service  string
	Instance string
	Behind   time.Duration // this host's, above 0 if the instance's is late
	Agreed   bool          // its last two heartbeats say the same
}

// Move puts an event into an incident.
type Move struct {
	Seq      int64  // of the event
	Incident string // ID
}

// weight orders confidences.
func (c Confidence) weight() int { return slices.Index([]Confidence{"", Low, Medium, High}, c) }

// Explanation is why a lock failed, as far as the evidence shows.
type Explanation struct {
	Cause      Cause
	Confidence Confidence
	Evidence   []Evidence
	Everywhere bool // what happened is not of one shard
	// Elsewhere is where it happened, if that is another shard than the event's.
	Elsewhere notify.Place
}

// maxEvidence bounds the rows of an incident.
const maxEvidence = 20

// believe takes over the explanation of an event if it has better evidence, is about a later
// outage, or is a newer one of the event that the evidence is about. It reports whether it did.
// An explanation without evidence is one of many that say the same.
func (i *Incident) believe(x Explanation, event string) bool {
	if len(x.Evidence) == 0 {
		return false
	}
	evidence := x.Evidence
	known, moved := mentions(i.Evidence)
	switch {
	case x.Cause.ofDatabase() && i.Confidence != "": // each key has to be looked at
		evidence = append(known, x.Evidence...)
		if len(evidence) > maxEvidence || containsAll(i.Evidence, x.Evidence) {
			return false
		}
	case i.addsShard(x, event):
		i.Evidence = slices.Concat(known, x.Evidence[1:], moved)
		return true
	case later(x.Evidence, known):
	case later(known, x.Evidence):
		return false
	case x.Confidence.weight() > i.Confidence.weight():
	case event != i.Exemplar, x.Confidence == i.Confidence && slices.EqualFunc(x.Evidence, ofExemplar(x, known), Evidence.same):
		return false
	}
	i.Confidence, i.Exemplar = x.Confidence, event
	evidence = slices.Concat(evidence, moved)
	i.Evidence = evidence[:min(len(evidence), maxEvidence)]
	return true
}

// addsShard reports whether an event says of another shard that a service could not reach it:
// each has a row.
func (i *Incident) addsShard(x Explanation, event string) bool {
	if x.Cause != Unreachable || i.Confidence != x.Confidence || event == i.Exemplar || len(i.Evidence)+len(x.Evidence) > maxEvidence {
		return false
	}
	node := x.Evidence[1].Node // that was asked in vain
	return !slices.ContainsFunc(i.Evidence, func(e Evidence) bool { return e.Kind != Reported && e.Node == node })
}

// ofExemplar returns the rows that an incident has of its exemplar, without those that addsShard
// allowed, if the exemplar's explanation is x.
func ofExemplar(x Explanation, rows []Evidence) []Evidence {
	if x.Cause == Unreachable {
		return rows[:min(len(rows), len(x.Evidence))]
	}
	return rows
}

// later reports whether rows are about an outage that began after the one of others was over.
func later(rows, others []Evidence) bool {
	began, _ := outageIn(rows)
	_, over := outageIn(others)
	return !began.IsZero() && !over.IsZero() && began.After(over)
}

// outageIn returns when a node was first seen to be away, and last seen to be back, as far
// as rows say so.
func outageIn(rows []Evidence) (began, over time.Time) {
	for _, r := range rows {
		switch {
		case r.Kind != Seen || r.Entry == nil:
		case began.IsZero() && r.Entry.Kind == watch.Down:
			began = r.Entry.At
		case r.Entry.Kind == watch.Up, r.Entry.Kind == watch.Restart:
			over = r.Entry.At
		}
	}
	return began, over
}

func containsAll(rows, others []Evidence) bool {
	for _, o := range others {
		if !slices.ContainsFunc(rows, o.alike) {
			return false
		}
	}
	return true
}
