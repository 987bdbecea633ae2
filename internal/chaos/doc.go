// Package chaos has a randomized test of both layers at once. Several processes
// do thousands of operations on few keys while locks are wiped, masters killed
// with locks that no replica has, processes paused past their leases and killed,
// and connections to the database cut by the server. Every other process goes on
// without the lock where it can't be asked. An oracle of its own, which knows nothing of Belay but when the engine
// granted and released and what the database answered, says which operations had
// a lock at the same time; each of those must have been reported, and nothing
// else.
package chaos
