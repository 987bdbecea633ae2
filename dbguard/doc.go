// Package dbguard is the second layer: the database itself refuses the second writer.
//
// Give a model a unique index against a second insert, and a column of type [Version]
// against a second update. Check the tables when the service starts. A [*ConflictError]
// describes a refused write:
//
//	type Stock struct {
//		ID      int64
//		Left    int
//		Version dbguard.Version
//	}
//
//	if err := errors.Join(dbguard.Install(db), dbguard.Check(ctx, db, &Stock{})); err != nil {
//		return err
//	}
//	err := db.Model(&stock).Update("left", stock.Left-1).Error
//	if conflict, ok := errors.AsType[*dbguard.ConflictError](err); ok {
//		log.Print(conflict.Kind, conflict.Table) // another writer has updated the row
//	}
//
// # Versions
//
// The column adds its condition and its increment to the statements that gorm builds, in
// transactions and outside of them. A *gorm.DB needs [Install] for the error of an update
// that matches no row, and for the new versions in memory. Package guard calls it. On
// MySQL and MariaDB, a column of type [Stamp] proves the outcome of a COMMIT that was not
// answered.
//
// # Inside of guard.Do
//
// In guard.Do the transaction examines each conflict on a protected row: it reads the row as of
// the moment when this caller got the lock, and as it is committed now. [Evidence] has the
// result. An insert that the unique index refused is a [*ConflictError], too; outside of
// guard.Do it is the driver's error.
//
// Statements that end or commit the transaction are refused with guard.ErrTxControl, and
// those that would run outside of it with [ErrOutside]. While rows of a query are open,
// nothing is committed. After a deadlock, a lost connection, or a conflict that proves
// another writer, every further statement is refused.
package dbguard
