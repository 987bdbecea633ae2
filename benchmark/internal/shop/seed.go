package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// MaxRows bounds the size of a table, so that seeded numbers sort as text.
const MaxRows = 1_000_000_000

const chunk = 100_000

// A table is one of the two that are seeded.
type table struct {
	name, columns string
	values        string // of the row with the id seq
	check         string // a statement that counts the correct rows
}

var tables = []table{
	{
		name: "orders", columns: "id, no, item, amount, created_at",
		values: "seq, CONCAT('A', LPAD(seq, 11, '0')), 1 + seq % 1000, 1, '2026-01-01'", // these numbers sort before those of any run
		check:  "SELECT COUNT(*) FROM orders WHERE id <= ? AND no = CONCAT('A', LPAD(id, 11, '0'))",
	},
	{
		name: "stocks", columns: "id, name, remaining, version",
		values: "seq, CONCAT('item ', seq), 1 + seq % 100, 1",
		check:  "SELECT COUNT(*) FROM stocks WHERE id <= ? AND remaining >= 0",
	},
}

// Database is the name of the database for tables of the given size. Sizes have
// databases of their own and live side by side.
func Database(rows int64) string { return fmt.Sprintf("belay_bench_%d", rows) }

// Seed fills both tables up to the given size and verifies them. Rows that are there
// already are kept: each chunk and the note that it is there are one transaction, so
// that a run that was interrupted continues where it was.
func Seed(ctx context.Context, dsn string, rows int64, out io.Writer) error {
	db, err := Create(ctx, dsn, Database(rows))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, t := range tables {
		if err := t.fill(ctx, db, rows, out); err != nil {
			return err
		}
	}
	return nil
}

// Create makes a database with the tables of the shop, unless they are there, and
// opens a connection to it.
func Create(ctx context.Context, dsn, database string) (*sql.DB, error) {
	server, err := OpenPool(dsn, "", 1)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	if _, err := server.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+database); err != nil {
		return nil, fmt.Errorf("create database %s: %w", database, err)
	}
	db, err := OpenPool(dsn, database, 1)
	if err != nil {
		return nil, err
	}
	if err := CreateTables(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// CreateTables makes the tables of the shop, unless they are there.
func CreateTables(ctx context.Context, db *sql.DB) error {
	for statement := range strings.SplitSeq(strings.TrimSpace(schema), ";\n") {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	return nil
}

func (t table) fill(ctx context.Context, db *sql.DB, rows int64, out io.Writer) error {
	if _, err := db.ExecContext(ctx, "INSERT IGNORE INTO seed_progress (name) VALUES (?)", t.name); err != nil {
		return fmt.Errorf("note how far %s is: %w", t.name, err)
	}
	loaded, verified, err := t.progress(ctx, db)
	if err != nil {
		return fmt.Errorf("read how far %s is: %w", t.name, err)
	}
	if verified {
		fmt.Fprintf(out, "%s: %d rows, verified before\n", t.name, rows)
		return nil
	}
	count := measure.Progress(out, t.name, loaded, rows)
	for loaded < rows {
		last := min(loaded+chunk, rows)
		if err := t.load(ctx, db, loaded, last); err != nil {
			return fmt.Errorf("load %s, rows %d to %d; run seed again to continue: %w", t.name, loaded+1, last, err)
		}
		count(last - loaded)
		loaded = last
	}
	return t.verify(ctx, db, rows, out)
}

func (t table) progress(ctx context.Context, db *sql.DB) (loaded int64, verified bool, err error) {
	err = db.QueryRowContext(ctx, "SELECT loaded, verified FROM seed_progress WHERE name = ?", t.name).Scan(&loaded, &verified)
	return loaded, verified, err
}

// load inserts the rows after loaded up to last. They come from MariaDB's engine
// SEQUENCE: seq_1_to_9 has the rows 1 to 9.
func (t table) load(ctx context.Context, db *sql.DB, loaded, last int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	insert := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM seq_%d_to_%d", t.name, t.columns, t.values, loaded+1, last) //nolint:gosec // of this file
	if _, err := tx.ExecContext(ctx, insert); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE seed_progress SET loaded = ? WHERE name = ? AND loaded = ?", last, t.name, loaded); err != nil {
		return err
	}
	return tx.Commit()
}

func (t table) verify(ctx context.Context, db *sql.DB, rows int64, out io.Writer) error {
	fmt.Fprintf(out, "%s: verifying\n", t.name)
	var correct int64
	if err := db.QueryRowContext(ctx, t.check, rows).Scan(&correct); err != nil {
		return fmt.Errorf("verify %s: %w", t.name, err)
	}
	if correct != rows {
		return fmt.Errorf("verify %s: %d of %d rows are correct; drop the database %s and seed again", t.name, correct, rows, Database(rows))
	}
	if _, err := db.ExecContext(ctx, "UPDATE seed_progress SET verified = TRUE WHERE name = ?", t.name); err != nil {
		return fmt.Errorf("note that %s is verified: %w", t.name, err)
	}
	fmt.Fprintf(out, "%s: %d rows, verified\n", t.name, rows)
	return nil
}

// ErrNotSeeded is returned by CheckSeeded when tables are missing or not complete.
var ErrNotSeeded = errors.New("the tables are not seeded")

// CheckSeeded returns ErrNotSeeded unless the tables of the given size are complete.
// db is the database of that size.
func CheckSeeded(ctx context.Context, db *sql.DB, rows int64) error {
	const unknownDatabase, unknownTable = 1049, 1146
	for _, t := range tables {
		loaded, verified, err := t.progress(ctx, db)
		refused, _ := errors.AsType[*mysql.MySQLError](err)
		switch {
		case errors.Is(err, sql.ErrNoRows), refused != nil && (refused.Number == unknownDatabase || refused.Number == unknownTable), err == nil && !verified:
			return fmt.Errorf("%w: %s has %d of %d rows; run the command seed -rows %d", ErrNotSeeded, t.name, loaded, rows, rows)
		case err != nil:
			return fmt.Errorf("read how far the tables are seeded: %w", err)
		}
	}
	return nil
}
