package dialect

// Result codes of SQLite, and extended ones.
const (
	sqliteBusy   = 5
	sqliteLocked = 6
	sqliteIO     = 10

	sqliteConstraint   = 19
	sqliteConstraintPK = 1555
	sqliteConstraintUQ = 2067
	sqliteBusySnapshot = 517
)

// sqliteRollsBack are NOMEM, INTERRUPT, IOERR, CORRUPT and FULL, at which SQLite may
// roll back.
var sqliteRollsBack = []int{7, 9, sqliteIO, 11, 13}
