package watch

import (
	"slices"
	"time"
)

// Kind says what a timeline entry is about. The set is closed.
type Kind string

const (
	// Watching: the watcher began to look at a cluster, or stood still itself
	// until now, or Node refused it. Nothing is known of the time from Since to
	// At.
	Watching Kind = "watching"
	// Failover: Node took over a shard from Peer.
	Failover Kind = "failover"
	// Restart: the process of Node is a new one.
	Restart Kind = "restart"
	// Down: Node does not answer. Numbers: refused is 1 if the connection was
	// refused, as by a host without the process.
	Down Kind = "down"
	// Up: Node answers again, after silent_ms without an answer. Numbers:
	// same_process is 1 if it lived all the time, 0 if it is a new process.
	Up Kind = "up"
	// Split: nodes disagree. Node and Peer both claim the shard's slots, or Peer,
	// of any shard, is the first to see Node as failed, which answers here.
	Split Kind = "split"
	// Agreed: a Split is over.
	Agreed Kind = "agreed"
	// Resharding: slots have another master, or begin to move.
	Resharding Kind = "resharding"
	// Eviction: Node evicted keys to stay below its memory limit.
	Eviction Kind = "eviction"
	// Flush: FLUSHALL or FLUSHDB emptied Node. Numbers: calls by command,
	// keys_before and keys_after.
	Flush Kind = "flush"
	// Deletion: commands that remove keys were called on Node, a master. Numbers:
	// calls by command; routine is 1 if such calls go on all the time.
	Deletion Kind = "deletion"
	// Expiry: keys of Node, a master on which that is rare, have expired. Numbers:
	// expired.
	Expiry Kind = "expiry"
	// ClockSet: the clock of Node, by which its keys expire, was set. Numbers:
	// forward_ms, below 0 if it was set back.
	ClockSet Kind = "clock_set"
	// ClusterDown and ClusterOK: Node does not, or does again, serve its slots.
	ClusterDown Kind = "cluster_down"
	ClusterOK   Kind = "cluster_ok"
)

// Kinds are all kinds.
var Kinds = []Kind{
	Watching, Failover, Restart, Down, Up, Split, Agreed, Resharding, Eviction, Flush, Deletion, Expiry, ClockSet,
	ClusterDown, ClusterOK,
}

// Entry is one change of a watched Redis, as the watcher saw it. It looks from
// time to time, so the change lies between Since and At. Package words says it in
// a sentence. All Numbers and Names are optional.
type Entry struct {
	ID      int64             `json:"id"`             // given by the store
	At      time.Time         `json:"at"`             // when it was seen, by this host's clock
	Since   time.Time         `json:"since,omitzero"` // when it was last seen to be otherwise; zero = not known
	Kind    Kind              `json:"kind"`
	Cluster string            `json:"cluster"`         // name of the watched target
	Shard   string            `json:"shard,omitempty"` // slot ranges, as in 0-5460; empty where there are none, or for all
	Node    string            `json:"node,omitempty"`  // host:port
	Peer    string            `json:"peer,omitempty"`  // host:port of the other node involved
	Numbers map[string]int64  `json:"numbers,omitzero"`
	Names   map[string]string `json:"names,omitzero"`
}

// flushing and deleting are the commands that remove keys. Belay's own scripts
// call none of them: a release is HDEL, a renewal PEXPIRE. Redisson's release is
// DEL. INFO counts the calls in scripts, too.
var (
	flushing = []string{"flushall", "flushdb"}
	deleting = []string{
		"del", "unlink", "getdel", "expire", "expireat", "pexpireat", "rename", "renamenx", "move", "swapdb",
	}
)

// Commands are those that remove keys, whose calls Flush and Deletion count.
var Commands = slices.Sorted(slices.Values(slices.Concat(flushing, deleting)))

// Names of Entry.Numbers.
const (
	Refused     = "refused"       // Down: 1 if connections are refused
	SilentMS    = "silent_ms"     // Up: how long there was no answer
	SameProcess = "same_process"  // Up: 1 if the process lived all the time
	LostBytes   = "lost_at_least" // Failover: replication bytes that the new master lacks, a lower bound
	OldEpoch    = "old_epoch"     // Failover: config epoch of the old master
	NewEpoch    = "new_epoch"     // Failover: config epoch of the new master
	OldOffset   = "old_offset"    // Failover: last seen replication offset of the old master
	NewOffset   = "new_offset"    // Failover: where the new master's own history begins
	WasMaster   = "was_master"    // Restart: 1 if the process that ended was a master
	KeysBefore  = "keys_before"   // Restart: last seen number of keys
	KeysAfter   = "keys_after"    // Restart: number of keys of the new process
	Evicted     = "evicted"       // Eviction: keys evicted since the last look
	FlushAll    = "flushall"      // Flush: calls of FLUSHALL
	Routine     = "routine"       // Deletion: 1 if such calls go on all the time
	ForwardMS   = "forward_ms"    // ClockSet: by how much the clock was set forward
	Expired     = "expired"       // Expiry: keys expired since the last look
	MaxMemory   = "maxmemory"     // Eviction: the limit in bytes
	Epoch       = "epoch"         // Split: config epoch of Node
	PeerEpoch   = "peer_epoch"    // Split: config epoch of Peer
	SeenBy      = "seen_by"       // Split: how many nodes see Node as failed
	Moving      = "moving"        // Resharding: slots that begin to move
	Callers     = "callers"       // Flush, Deletion: clients that called one of the commands last; none if Redis did not list them
)

// Names of Entry.Names. What they hold may be text from anybody.
const (
	Role       = "role"        // Down, Restart: master or replica; none if Node never answered
	NewRole    = "new_role"    // Restart: of the new process
	Reason     = "reason"      // Watching: what Node answered
	Slots      = "slots"       // Split: of the shard that both serve
	From       = "from"        // Resharding: the nodes that had some of the slots
	Policy     = "policy"      // Eviction: the memory policy
	Client     = "client"      // Flush, Deletion: address of a client
	ClientName = "client_name" // Flush, Deletion: its name
	User       = "user"        // Flush, Deletion: its user, unless that is the default one
	Text       = "text"        // of any kind: the sentence in which an older version stored the entry
)
