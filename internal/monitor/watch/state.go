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
	Slots    int // how many
	Epoch    int64
}

// Node is one server, as it last answered.
type Node struct {
	Addr     string // host:port
	ID       string // of a Redis Cluster's node
	Up       bool
	DownAt   time.Time     // since when it does not answer; zero while Up
	Error    string        // why it does not answer
	SeenAt   time.Time     // when it last answered
	Took     time.Duration // how long the last answer took
	Role     string        // "master" or "replica"
	Master   string        // of a replica
	LinkUp   bool          // of a replica, to its master
	Shard    string        // see Shard.Name
	Epoch    int64         // config epoch
	RunID    string        // new with every start of the process
	Started  time.Time     // of the process
	Offset   int64         // of replication
	Keys     int64
	Evicted  int64 // keys, since the process started
	Memory   int64 // bytes used
	MaxBytes int64 // limit of Memory; 0 = none
	Policy   string
	Version  string
	Serves   bool // the cluster's state is ok in its view
	Coverage bool // cluster-require-full-coverage
}
