package chaos_test

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// writesSQL reports whether the worker of a name writes SQL without gorm: one of three does.
func writesSQL(name string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "w"))
	return err == nil && n%3 == 1
}

// ownKinds returns the kinds of tasks that the worker of a call has in place of those of gorm.
func ownKinds(do string) map[class][]workload {
	name, _, _ := strings.Cut(do, ".")
	switch {
	case writesSQL(name):
		return bySQL
	case writesByPgx(name):
		return byPgx
	}
	return nil
}

// bySQL are the kinds of tasks of workers that write SQL, where they have their own.
var bySQL = map[class][]workload{
	orders:   {{"insert", insertBySQL, orderRow, nil}},
	counters: {{"update", countBySQL, counterRow, nil}},
	items:    {{"two writes", sellBySQL, saleRows, nil}},
	depots:   {{"send by SQL", sendBySQL, depotRow, nil}},
}

func orderRow(id int64, _ string) []guard.Option {
	return []guard.Option{guard.Protects(guard.Row("orders", "no", fmt.Sprint(id)))}
}

func counterRow(id int64, _ string) []guard.Option {
	return []guard.Option{guard.Protects(guard.Row("counters", "id", id))}
}

func saleRows(id int64, do string) []guard.Option {
	return []guard.Option{guard.Retries(2), guard.Protects(guard.Row("items", "id", id), guard.Row("sales", "no", do))}
}

// spell spells the names and the marks of arguments of a statement as the database has them.
func spell(tx *gorm.DB, query string) string {
	query = strings.ReplaceAll(query, "{by}", tx.Statement.Quote("by"))
	for n := 1; tx.Name() == "postgres" && strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
	}
	return query
}

func insertBySQL(ctx context.Context, db *gorm.DB, _ *worker, t task, do string) error {
	tx, err := guard.SQL(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, spell(db, "INSERT INTO orders (no, {by}) VALUES (?, ?)"), fmt.Sprint(t.id), do)
	return err
}

// readBySQL reads the count of a row, and its version.
func readBySQL(ctx context.Context, db *gorm.DB, w *worker, t task, do, table string) (tx *sql.Tx, n, version int64, err error) {
	if tx, err = guard.SQL(ctx); err != nil {
		return nil, 0, 0, err
	}
	err = tx.QueryRowContext(ctx, spell(db, "SELECT n, version FROM "+table+" WHERE id = ?"), t.id).Scan(&n, &version)
	if err == nil {
		w.read(do, version)
	}
	return tx, n, version, err
}

// countBySQL compares the version by UpdateRow, or by an UPDATE of its own.
func countBySQL(ctx context.Context, db *gorm.DB, w *worker, t task, do string) error {
	tx, n, version, err := readBySQL(ctx, db, w, t, do, "counters")
	if err != nil {
		return err
	}
	linger(ctx, t.takes)
	row := guard.Row("counters", "id", t.id)
	if t.after {
		return guard.UpdateRow(ctx, row, version, spell(db, "n = ?"), n+1)
	}
	var wrote int64
	res, err := tx.ExecContext(ctx, spell(db, "UPDATE counters SET n = ?, version = version + 1 WHERE id = ? AND version = ?"), n+1, t.id, version)
	if err == nil {
		wrote, err = res.RowsAffected()
	}
	return guard.Changed(ctx, row, version, wrote, err)
}

func sellBySQL(ctx context.Context, db *gorm.DB, w *worker, t task, do string) error {
	tx, n, version, err := readBySQL(ctx, db, w, t, do, "items")
	if err != nil {
		return err
	}
	if err := guard.UpdateRow(ctx, guard.Row("items", "id", t.id), version, spell(db, "n = ?"), n+1); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, spell(db, "INSERT INTO sales (no, item, n) VALUES (?, ?, ?)"), do, t.id, n+1)
	return err
}
