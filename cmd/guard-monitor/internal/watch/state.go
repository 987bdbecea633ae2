package watch

import "time"

// Cluster is what the watcher knows of a target at a moment.
type Cluster struct {
	Name   string
	Mode   Mode
	Since  time.Time // since when it has been looked at without a break
	SeenAt time.Time // when the last round ended
	Shards []Shard   // in order of slots
	Nodes  []Node    // in order of address
}

// Mode says how the servers of a target work together.
type Mode string

const (
	Undetermined Mode = ""         // no node has answered yet
	Single       Mode = "single"   // a server, with or without replicas
	Sentinel     Mode = "sentinel" // the same, with Sentinels that promote replicas
	Clustered    Mode = "cluster"  // a Redis Cluster
)

// Shard is a master with its replicas.
type Shard struct {
	Name     string // slot ranges, as in 0-5460; empty outside a Redis Cluster
	Master   string // host:port
	Replicas []string
	Slots    int   // how many
	Epoch    int64 // config epoch of the master
}

// Node is one server, as it last answered.
type Node struct {
	Addr     string // host:port
	ID       string // of a Redis Cluster's node
	Up       bool
	DownAt   time.Time     // since when it does not answer; zero while Up
	Error    string        // why it does not answer
	SeenAt   time.Time     // when it last answered what it was asked
	Took     time.Duration // how long the last answer took
	Role     string        // "master" or "replica"
	Master   string        // of a replica: host:port
	LinkUp   bool          // of a replica, to its master
	Shard    string        // see Shard.Name
	Epoch    int64         // config epoch
	RunID    string        // new with every start of the process
	Keys     int64
	Evicted  int64 // keys, since the process started
	Expired  int64 // keys, since the process started
	Memory   int64 // bytes used
	MaxBytes int64 // limit of Memory; 0 = none
	Policy   string
	Version  string
	Serves   bool // the cluster's state is ok in its view

	history    string // of replication, when it was last a master
	reached    int64  // its offset then
	replID2    string // the history that it followed before it was promoted
	fork       int64  // the first offset that is not of that history
	moving     int    // slots that begin to move
	movingTold int    // moving, when an entry last told of it
	failures   int    // rounds without an answer
	denied     bool   // the last answer was that guard-monitor may not ask
	answers    int    // rounds with one, since the last without

	calls map[string]int64 // of commands that remove keys, since the process started
	clock time.Time        // of its host

	evictions, flushes, deletions, expiries tally
}

const (
	master  = "master"
	replica = "replica"
)

// shut takes in that a node forbids what it is asked: it is not down, but
// nothing is known of it.
func (n *Node) shut(l *look) {
	if n.DownAt.IsZero() {
		n.DownAt = l.at.Add(-l.took)
	}
	n.Up, n.Error, n.answers, n.denied = false, l.err.Error(), 0, true
	n.failures++
}

// update takes in an answer.
func (n *Node) update(l *look) {
	n.Up, n.DownAt, n.Error, n.failures, n.denied = true, time.Time{}, "", 0, false
	n.answers++
	n.SeenAt, n.Took = l.at, l.took
	n.RunID = l.info["run_id"]
	n.Role, n.Master, n.LinkUp = master, "", false
	if l.info["role"] == "slave" {
		n.Role = replica
		n.Master = join(l.info["master_host"], l.info["master_port"])
		n.LinkUp = l.info["master_link_status"] == "up"
	}
	if n.Role == master {
		n.history, n.reached = l.info["master_replid"], l.number("master_repl_offset")
	}
	n.replID2, n.fork = l.info["master_replid2"], l.number("second_repl_offset")
	n.Keys, n.Evicted, n.Expired = l.keys(), l.number("evicted_keys"), l.number("expired_keys")
	n.calls = l.calls()
	n.clock = time.UnixMicro(l.number("server_time_usec"))
	n.Memory, n.MaxBytes, n.Policy = l.number("used_memory"), l.number("maxmemory"), l.info["maxmemory_policy"]
	n.Version = l.info["redis_version"]
	n.Serves = l.serves
	if me, ok := l.me(); ok {
		n.ID, n.Epoch, n.moving = me.id, me.epoch, me.moving
	}
}
