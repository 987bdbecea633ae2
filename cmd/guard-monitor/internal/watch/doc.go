// Package watch looks at every node of the Redis servers that keep locks, and
// writes a timeline of what changed: failovers, restarts, evictions, nodes that
// were cut off.
//
// Redis Cluster announces no failover, so the only way is to ask each node, each
// second, and to compare: a cluster client would ask the nodes that it believes
// in, and a clean failover never shows in cluster_state. Each node is asked over
// a connection of its own, all side by side, and one that does not answer holds
// up a round no longer than four fifths of Config.Every.
//
// A round has two halves. The first asks and parses (look). The second is free
// of input and output: it compares what the nodes said with what they said
// before and returns entries (compare). An entry says when the change was seen
// and when it was last seen not to be there, since it lies between the two.
//
// The watcher does not trust itself: when its own rounds come late, the nodes
// are not blamed for it, and the timeline says that nobody looked (Watching).
package watch
