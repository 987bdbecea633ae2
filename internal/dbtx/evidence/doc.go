// Package evidence collects the evidence for conflicts: which protected row a conflict
// met, and whether another writer wrote that row while this caller had the lock. It reads
// the row as of the snapshot, as it is committed now, and after the rollback, and
// compares the readings with the operation's first one.
package evidence
