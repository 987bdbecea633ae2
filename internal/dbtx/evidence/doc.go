// Package evidence judges conflicts: it finds out which protected row a conflict met, and
// whether another writer wrote that row while this caller had the lock. It reads the row
// as of the snapshot, as it is committed now, and after the rollback, and compares that
// with what the operation saw first.
package evidence
