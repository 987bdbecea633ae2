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
	SeenAt   time.Time     // when it last answered the queries
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
	movingTold int    // moving, in the last entry on it
	failures   int    // rounds without an answer
	denied     bool   // it rejected the last query as forbidden
	answers    int    // rounds with one, since the last without

	calls map[string]int64 // of commands that remove keys, since the process started
	clock time.Time        // of its host

	evictions, flushes, deletions, expiries tally
}

const (
	master  = "master"
	replica = "replica"
)
