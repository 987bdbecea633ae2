package fronts_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/Masterminds/squirrel"
	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// fronts are the libraries. There is no shop where a library does not know the driver.
var fronts = map[string]func(testing.TB, *guard.Guard, database) shop{
	"database/sql": func(_ testing.TB, _ *guard.Guard, d database) shop { return plain{d} },
	"prepared":     newPrepared,
	"sqlx": func(_ testing.TB, g *guard.Guard, d database) shop {
		return sqlxShop{sqlx.NewDb(g.Pool(), d.driver), d}
	},
	"sqlc": func(_ testing.TB, g *guard.Guard, d database) shop { return sqlcShop{&queries{g.Pool(), d}} },
	"squirrel": func(_ testing.TB, g *guard.Guard, d database) shop {
		b := squirrel.StatementBuilder.RunWith(g.Pool())
		if d.marks {
			b = b.PlaceholderFormat(squirrel.Dollar)
		}
		return squirrelShop{b, g}
	},
	"bun": newBun,
	"ent": func(_ testing.TB, g *guard.Guard, d database) shop {
		return entShop{entsql.OpenDB(d.dialect, g.Pool())}
	},
	"gorm":        func(testing.TB, *guard.Guard, database) shop { return gormShop{} },
	"pgx":         newPgx,
	"sqlc on pgx": newSqlcPgx,
}

const (
	insertSale = "INSERT INTO sales (no, buyer) VALUES (?, ?)"
	takeItem   = "UPDATE items SET stock = stock - 1, version = version + 1 WHERE id = 7 AND version = ?"
)

func written(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// errUndo makes a front roll its transaction back.
var errUndo = errors.New("undo")

// plain is database/sql with the operation's transaction.
type plain struct{ d database }

func (s plain) sell(ctx context.Context, no string) error {
	tx, err := guard.SQL(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, s.d.mark(insertSale), no, "ann")
	return err
}

func (s plain) take(ctx context.Context, version int64) (int64, error) {
	tx, err := guard.SQL(ctx)
	if err != nil {
		return 0, err
	}
	return written(tx.ExecContext(ctx, s.d.mark(takeItem), version))
}

func (s plain) undo(ctx context.Context, no string) error {
	tx, err := guard.SQL(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SAVEPOINT mine"); err != nil {
		return err
	}
	if err := s.sell(ctx, no); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT mine")
	return err
}

// prepared has statements that were prepared when the program began.
type prepared struct {
	g          *guard.Guard
	sale, item *sql.Stmt
}

func newPrepared(t testing.TB, g *guard.Guard, d database) shop {
	t.Helper()
	sale, err := g.Pool().Prepare(d.mark(insertSale))
	if err != nil {
		t.Fatal(err)
	}
	item, err := g.Pool().Prepare(d.mark(takeItem))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sale.Close(); item.Close() })
	return prepared{g, sale, item}
}

func (s prepared) sell(ctx context.Context, no string) error {
	_, err := s.sale.ExecContext(ctx, no, "ann")
	return err
}

func (s prepared) take(ctx context.Context, version int64) (int64, error) {
	return written(s.item.ExecContext(ctx, version))
}

func (s prepared) undo(ctx context.Context, no string) error {
	tx, err := s.g.Pool().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	in := tx.StmtContext(ctx, s.sale)
	defer in.Close()
	_, err = in.ExecContext(ctx, no, "ann")
	return errors.Join(err, tx.Rollback())
}

// sqlxShop is sqlx, with named arguments.
type sqlxShop struct {
	db *sqlx.DB
	d  database
}

type sale struct{ No, Buyer string }

func (s sqlxShop) sell(ctx context.Context, no string) error {
	_, err := s.db.NamedExecContext(ctx, "INSERT INTO sales (no, buyer) VALUES (:no, :buyer)", sale{no, "ann"})
	return err
}

func (s sqlxShop) take(ctx context.Context, version int64) (int64, error) {
	return written(s.db.ExecContext(ctx, s.db.Rebind(takeItem), version))
}

func (s sqlxShop) undo(ctx context.Context, no string) error {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.NamedExecContext(ctx, "INSERT INTO sales (no, buyer) VALUES (:no, :buyer)", sale{no, "ann"})
	return errors.Join(err, tx.Rollback())
}

// queries has the shape of what sqlc generates.
type queries struct {
	db dbtx
	d  database
}

type dbtx interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

func (q *queries) withTx(tx *sql.Tx) *queries { return &queries{tx, q.d} }

func (q *queries) insertSale(ctx context.Context, no, buyer string) error {
	_, err := q.db.ExecContext(ctx, q.d.mark("-- name: InsertSale :exec\n"+insertSale), no, buyer)
	return err
}

func (q *queries) takeItem(ctx context.Context, version int64) (int64, error) {
	return written(q.db.ExecContext(ctx, q.d.mark("-- name: TakeItem :execrows\n"+takeItem), version))
}

type sqlcShop struct{ q *queries }

func (s sqlcShop) sell(ctx context.Context, no string) error {
	tx, err := guard.SQL(ctx)
	if err != nil {
		return s.q.insertSale(ctx, no, "ann")
	}
	return s.q.withTx(tx).insertSale(ctx, no, "ann")
}

func (s sqlcShop) take(ctx context.Context, version int64) (int64, error) {
	return s.q.takeItem(ctx, version)
}

func (s sqlcShop) undo(ctx context.Context, no string) error {
	tx, err := s.q.db.(*sql.DB).BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	return errors.Join(s.q.withTx(tx).insertSale(ctx, no, "ann"), tx.Rollback())
}

// squirrelShop is squirrel.
type squirrelShop struct {
	b squirrel.StatementBuilderType
	g *guard.Guard
}

func (s squirrelShop) sell(ctx context.Context, no string) error {
	return s.sellBy(ctx, s.b, no)
}

func (s squirrelShop) sellBy(ctx context.Context, b squirrel.StatementBuilderType, no string) error {
	_, err := b.Insert("sales").Columns("no", "buyer").Values(no, "ann").ExecContext(ctx)
	return err
}

func (s squirrelShop) take(ctx context.Context, version int64) (int64, error) {
	return written(s.b.Update("items").Set("stock", squirrel.Expr("stock - 1")).Set("version", squirrel.Expr("version + 1")).
		Where(squirrel.Eq{"id": 7, "version": version}).ExecContext(ctx))
}

func (s squirrelShop) undo(ctx context.Context, no string) error {
	tx, err := s.g.Pool().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	return errors.Join(s.sellBy(ctx, s.b.RunWith(tx), no), tx.Rollback())
}

// bunShop is bun, which writes its arguments into the text.
type bunShop struct{ db *bun.DB }

type bunSale struct {
	bun.BaseModel `bun:"table:sales"`

	No    string `bun:",pk"`
	Buyer string
}

type bunItem struct {
	bun.BaseModel `bun:"table:items"`

	ID      int64 `bun:",pk"`
	Stock   int64
	Version int64
}

func newBun(_ testing.TB, g *guard.Guard, d database) shop {
	var of schema.Dialect = sqlitedialect.New()
	switch d.dialect {
	case dialect.MySQL:
		of = mysqldialect.New()
	case dialect.Postgres:
		of = pgdialect.New()
	}
	return bunShop{bun.NewDB(g.Pool(), of)}
}

func (s bunShop) sell(ctx context.Context, no string) error { return bunSell(ctx, s.db, no) }

func bunSell(ctx context.Context, db bun.IDB, no string) error {
	_, err := db.NewInsert().Model(&bunSale{No: no, Buyer: "ann"}).Exec(ctx)
	return err
}

func (s bunShop) take(ctx context.Context, version int64) (int64, error) {
	return written(s.db.NewUpdate().Model((*bunItem)(nil)).Set("stock = stock - 1").Set("version = version + 1").
		Where("id = ?", 7).Where("version = ?", version).Exec(ctx))
}

func (s bunShop) undo(ctx context.Context, no string) error {
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		return errors.Join(bunSell(ctx, tx, no), errUndo)
	})
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

// entShop is ent's driver, with the statements that its generated code makes.
type entShop struct{ drv *entsql.Driver }

func (s entShop) sell(ctx context.Context, no string) error {
	err := entSell(ctx, s.drv, no)
	if _, judged := errors.AsType[*dbguard.ConflictError](err); judged && !sqlgraph.IsUniqueConstraintError(err) {
		return errors.New("ent does not see that it is a duplicate")
	}
	return err
}

func entSell(ctx context.Context, drv dialect.ExecQuerier, no string) error {
	name := drv.(interface{ Dialect() string }).Dialect()
	query, args := entsql.Dialect(name).Insert("sales").Columns("no", "buyer").Values(no, "ann").Query()
	var res sql.Result
	return drv.Exec(ctx, query, args, &res)
}

func (s entShop) take(ctx context.Context, version int64) (int64, error) {
	query, args := entsql.Dialect(s.drv.Dialect()).Update("items").Add("stock", -1).Add("version", 1).
		Where(entsql.And(entsql.EQ("id", 7), entsql.EQ("version", version))).Query()
	var res sql.Result
	if err := s.drv.Exec(ctx, query, args, &res); err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (s entShop) undo(ctx context.Context, no string) error {
	tx, err := s.drv.Tx(ctx)
	if err != nil {
		return err
	}
	return errors.Join(entSell(ctx, entTx{tx, s.drv.Dialect()}, no), tx.Rollback())
}

type entTx struct {
	dialect.ExecQuerier
	name string
}

func (t entTx) Dialect() string { return t.name }
