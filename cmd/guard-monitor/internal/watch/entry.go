package watch

import (
	"strconv"
	"strings"
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

// Entry is one change of a watched Redis, as the watcher saw it. It looks from
// time to time, so the change lies between Since and At. Numbers that begin
// with "lost", "old" and "new" belong to the kinds that mention them; all are
// optional.
type Entry struct {
	ID      int64     // given by the store
	At      time.Time // when it was seen, by this host's clock
	Since   time.Time // when it was last seen to be otherwise; zero = not known
	Kind    Kind
	Cluster string // name of the watched target
	Shard   string // slot ranges, as in 0-5460; empty where there are none, or for all
	Node    string // host:port
	Peer    string // host:port of the other node involved
	Text    string // what happened, in words
	Numbers map[string]int64
}

// Number names that other packages read.
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
)

// InShard reports whether the slot belongs to the shard of that name.
func InShard(shard string, slot int) bool {
	for r := range strings.SplitSeq(shard, ",") {
		first, last, ok := strings.Cut(r, "-")
		if !ok {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err == nil && err2 == nil && from <= slot && slot <= to {
			return true
		}
	}
	return false
}
