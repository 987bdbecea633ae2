// Package watch looks at every node of the Redis servers that keep locks, and
// writes a timeline of what changed: failovers, restarts, evictions, nodes that
// were cut off.
//
// Redis Cluster announces no failover, so the watcher queries each node, each
// second, and compares. A cluster client would query the nodes that it knows, and a
// clean failover never shows in cluster_state. Each node has a connection of its
// own. All are queried at once, and one that does not answer delays a round by four
// fifths of Config.Every at most.
//
// A round has two halves. The first queries and parses (look). The second does no
// input or output: it compares the answers with those before and returns entries
// (compare). An entry says when the change was seen
// and when it was last seen not to be there, since it lies between the two.
//
// When a round of the watcher itself is late, it takes no silence for a node's
// failure, and the timeline says that nothing is known of that time (Watching).
package watch
