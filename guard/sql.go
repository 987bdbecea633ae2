package guard

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/tablerow"
	"github.com/belaygo/belay/once"
)

// Pool returns a *sql.DB whose statements run in the operation of their context. Give it to a
// library that is set up with a pool, such as sqlc, sqlx, bun or ent. A transaction that is
// begun by it is a savepoint of the operation. Outside of an operation, and with a context that
// comes from none, its statements return an error that matches dbguard.ErrOutside, but for
// those that read no table. It may prepare statements there.
//
// It is always the same one, has no connections of its own, and is closed with the Guard.
func (g *Guard) Pool() *sql.DB { return g.sql.DB() }

// SQL returns the transaction of the operation that ctx comes from, whatever began it: Do, Once,
// a middleware, a consumer. It is always the same one. Elsewhere it returns an error that matches
// dbguard.ErrOutside. Its Commit and Rollback return
// ErrTxControl and send nothing, and then the operation can't be committed.
//
// An INSERT that the database refuses because of a protected row returns a
// *dbguard.ConflictError, whose text ends with the driver's. What Belay can't read returns the
// driver's error, which is logged once for each table: see Inserted.
func SQL(ctx context.Context) (*sql.Tx, error) {
	t, err := dbtx.Operation(ctx)
	if err != nil {
		return nil, err
	}
	return t.SQL()
}

// DoSQL is Do for an operation that writes SQL. Name its rows with Row, in Protects and Also.
func (g *Guard) DoSQL(ctx context.Context, key string, op func(ctx context.Context, tx *sql.Tx) error, opts ...Option) error {
	if op == nil {
		return errNilOp
	}
	return g.Do(ctx, key, func(ctx context.Context, _ *gorm.DB) error {
		tx, err := SQL(ctx)
		if err != nil {
			return err
		}
		return op(ctx, tx)
	}, opts...)
}

// OnceSQL is Once for an operation that writes SQL.
func OnceSQL[T any](ctx context.Context, g *Guard, r once.Request, op func(ctx context.Context, tx *sql.Tx) (T, error), opts ...Option) (Answer[T], error) {
	if op == nil {
		return Answer[T]{}, errNilOp
	}
	return Once(ctx, g, r, func(ctx context.Context, _ *gorm.DB) (none T, err error) {
		tx, err := SQL(ctx)
		if err != nil {
			return none, err
		}
		return op(ctx, tx)
	}, opts...)
}

// A TableRow is a row that is named by its table: see Row.
type TableRow = tablerow.Row

// Row names the row of a table whose columns have the values: pairs are a column and its value,
// in turn, such as Row("seats", "show", 7, "seat", "A1"). They are all columns of one unique
// index. It stands for a model in Protects and Also. Its version, if it has one, is in the
// column "version"; Versioned names another one, and Stamped that of its stamp. What is wrong with it is an error of the
// operation that it is given to, which matches dbguard.ErrUnprotectable.
func Row(table string, pairs ...any) *TableRow { return tablerow.New(table, pairs) }

// UpdateRow updates a row inside an operation, and adds 1 to its version, if that is still
// version, the one that the operation has read. set is what comes behind SET in the database's
// own SQL, args are its arguments: UpdateRow(ctx, row, v, "stock = stock - ?", n). If the row
// has another version, or is gone, the error is a *dbguard.ConflictError. A row that is Stamped
// gets a new stamp.
//
// It is the only UPDATE in SQL that counts as one by version, as under DBOnly: any other may
// compare nothing.
func UpdateRow(ctx context.Context, row *TableRow, version int64, set string, args ...any) error {
	t, err := operationOf(ctx, row)
	if err != nil {
		return err
	}
	return t.UpdateRow(ctx, row, dbguard.Version(version), set, args)
}

// Changed judges an UPDATE that compares a version itself, as one that sqlc has generated. n is
// the number of rows that it wrote, and err its error; sql.ErrNoRows counts as no row. If it
// wrote none, the error is a *dbguard.ConflictError: the row did not have version any more.
func Changed(ctx context.Context, row *TableRow, version, n int64, err error) error {
	t, failed := operationOf(ctx, row)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return t.Changed(row, dbguard.Version(version), n, err)
}

// Inserted judges an INSERT that leaves out a row which is there, such as ON CONFLICT DO NOTHING
// or INSERT IGNORE. n is the number of rows that it wrote, and err its error; sql.ErrNoRows
// counts as no row. If it wrote none, the error is a *dbguard.ConflictError. On MySQL and MariaDB,
// give it INSERT IGNORE: ON DUPLICATE KEY UPDATE, which gorm's DoNothing is there, counts a row that
// is there as inserted if the DSN has clientFoundRows=true, and is refused if it has RETURNING.
func Inserted(ctx context.Context, row *TableRow, n int64, err error) error {
	t, failed := operationOf(ctx, row)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return t.Inserted(row, n, err)
}

// operationOf returns the transaction of the operation that ctx comes from.
func operationOf(ctx context.Context, row *TableRow) (*dbtx.Tx, error) {
	if row == nil {
		return nil, errors.New("guard: row is nil")
	}
	return dbtx.Operation(ctx)
}
