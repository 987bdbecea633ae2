// Package watch looks at every node of the Redis servers that keep locks, and
// writes a timeline of what changed: failovers, restarts, evictions, nodes that
// were cut off.
package watch
