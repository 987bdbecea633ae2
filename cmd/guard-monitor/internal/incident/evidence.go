package incident

import (
	"reflect"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// Kind says what a row of evidence states. The set is closed.
type Kind string

const (
	Reported Kind = "reported" // what the event says: Report
	Seen     Kind = "seen"     // what the watcher saw of Redis: Entry, For before the event

	// What restricts the rows before.
	NotTheMaster   Kind = "not_the_master"  // Redis granted the lock, and another node is known as the master before
	NothingLost    Kind = "nothing_lost"    // no lost replication was seen
	MasterMissing  Kind = "master_missing"  // whether the old master died or was cut off is not known yet
	KeysKept       Kind = "keys_kept"       // the new process has no fewer keys
	ProcessMissing Kind = "process_missing" // the process is gone, and not back
	NodeMissing    Kind = "node_missing"    // whether the node's process lives is not known yet
	EvictedUnknown Kind = "evicted_unknown" // it is not known which keys were evicted
	DeletedUnknown Kind = "deleted_unknown" // it is not known which keys a command removed
	RoutineUnknown Kind = "routine_unknown" // the same, where many are removed all the time
	FlushedBefore  Kind = "flushed_before"  // the flush may have come before the grant
	FlushedOne     Kind = "flushed_one"     // FLUSHDB empties one database
	NotExpired     Kind = "not_expired"     // a lock that is renewed does not expire

	// What else was reported, or not.
	EarlierHolder Kind = "earlier_holder"  // the next rows may have hit an earlier holder
	AlsoHeld      Kind = "also_held"       // the next row is of an operation that held the key of Report, too
	NoOtherHolder Kind = "no_other_holder" // neither another holder nor a peer of Service reported anything
	PeerWithout   Kind = "peer_without"    // instance Node worked without the lock, For before the event, as it could not reach Redis
	ClockOff      Kind = "clock_off"       // the clock of instance Node is behind by For
	ClockWrong    Kind = "clock_wrong"     // the clock of instance Node said From: the event is dated by its arrival
	NotExplained  Kind = "not_explained"   // guard-monitor failed
	LastHeartbeat Kind = "last_heartbeat"  // of Service, from instance Node, which beats every For
	NoHeartbeat   Kind = "no_heartbeat"    // since From
	Switched      Kind = "switched"        // the locks of Service moved by Switch, from From to To, or still move

	// How the lock's Redis was.
	Healthy       Kind = "healthy"        // Redis answered from From to To, and nothing happened to it
	Unwell        Kind = "unwell"         // Redis was not well
	NoNode        Kind = "no_node"        // the event names no Redis node
	NotWatched    Kind = "not_watched"    // Redis is not watched
	TooLongAgo    Kind = "too_long_ago"   // the timeline does not reach back
	NeverAnswered Kind = "never_answered" // Redis never answered guard-monitor
	NotLookedAt   Kind = "not_looked_at"  // no node answered since
	NobodyLooked  Kind = "nobody_looked"  // guard-monitor did not watch meanwhile: Entry

	Sentence Kind = "text" // Stored
)

// Kinds are all kinds.
var Kinds = []Kind{
	Reported, Seen, NotTheMaster, NothingLost, MasterMissing, KeysKept, ProcessMissing, NodeMissing, EvictedUnknown,
	DeletedUnknown, RoutineUnknown, FlushedBefore, FlushedOne, NotExpired, EarlierHolder, AlsoHeld, NoOtherHolder,
	PeerWithout, ClockOff, ClockWrong, NotExplained, LastHeartbeat, NoHeartbeat, Switched, Healthy, Unwell, NoNode, NotWatched, TooLongAgo, NeverAnswered,
	NotLookedAt, NobodyLooked, Sentence,
}

// Evidence is one observation that an explanation rests on: its kind and the
// arguments of that kind. Package words says it in a sentence. Times are UTC.
type Evidence struct {
	At      time.Time     `json:"at"`             // when it was observed
	Node    string        `json:"node,omitempty"` // the Redis node or the instance that it is about
	Kind    Kind          `json:"kind"`
	Report  *Report       `json:"report,omitempty"`
	Entry   *watch.Entry  `json:"entry,omitempty"`
	Service string        `json:"service,omitempty"`
	Switch  *Between      `json:"switch,omitempty"`
	Redis   string        `json:"redis,omitempty"` // the Redis node that an event names
	From    time.Time     `json:"from,omitzero"`
	To      time.Time     `json:"to,omitzero"`
	For     time.Duration `json:"for,omitempty"`
	Stored  string        `json:"text,omitempty"` // the sentence of a row that an older version stored
}

// Report is what an event says of its lock. Names are shortened.
type Report struct {
	Verdict  notify.Verdict `json:"verdict"`
	Outcome  notify.Outcome `json:"outcome"`
	Service  string         `json:"service"`
	Key      string         `json:"key"`
	Granted  time.Time      `json:"granted,omitzero"`
	Deadline time.Time      `json:"deadline,omitzero"`
	TTL      time.Duration  `json:"ttl,omitempty"`
	Place    notify.Place   `json:"place,omitzero"`
	Loss     notify.Loss    `json:"loss,omitempty"`
	Holder   notify.Holder  `json:"holder,omitempty"` // at the conflict

	Lost    *notify.LostCommits `json:"lost,omitempty"`    // of commits that were lost
	Message *notify.DeadLetter  `json:"message,omitempty"` // that waits for a decision
	Count   int64               `json:"count,omitempty"`   // of commits that were lost, or of messages

	Call *notify.UndecidedCall `json:"call,omitempty"` // whose outcome a person has to find out
}

const (
	maxName = 128 // bytes of a foreign name in a row
	maxID   = 255 // bytes of a message's id: somebody has to find it by that
)

// alike reports whether two rows say the same, at whatever time.
func (e Evidence) alike(o Evidence) bool {
	e.At = o.At
	return reflect.DeepEqual(e, o)
}

func (e Evidence) same(o Evidence) bool {
	return e.At.Equal(o.At) && e.alike(o)
}
