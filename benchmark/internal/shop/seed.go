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

// DSN returns the DSN of the database for tables of the given size, on the
// server of dsn. Sizes have databases of their own and live side by side.
func DSN(dsn string, rows int64) (string, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", errors.New("the DSN of the database is malformed")
	}
	cfg.DBName = Database(rows)
	return cfg.FormatDSN(), nil
}

// Database is the name of that database.
func Database(rows int64) string { return fmt.Sprintf("belay_bench_%d", rows) }

// A table is one of the two that are seeded.
type table struct {
	name, columns string
	row           func([]byte, int64) []byte
	check         string // a statement that finds the number of rows that are as they should be
}

var tables = []table{
	{
		name: "orders", columns: "id, no, item, amount, created_at", row: orderRow,
		check: "SELECT COUNT(*) FROM orders WHERE id <= ? AND no = CONCAT('A', LPAD(id, 11, '0'))",
	},
	{
		name: "stocks", columns: "id, name, remaining, version", row: stockRow,
		check: "SELECT COUNT(*) FROM stocks WHERE id <= ? AND remaining >= 0",
	},
}

// Seed fills both tables up to the given size and verifies them. Rows that are there
// already are kept: each chunk and the note that it is there are one transaction, so
// that a run that was interrupted continues where it was.
func Seed(ctx context.Context, dsn string, rows int64, out io.Writer) error {
	if err := create(ctx, dsn, rows); err != nil {
		return err
	}
	target, err := DSN(dsn, rows)
	if err != nil {
		return err
	}
	db, err := sql.Open("mysql", target)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer db.Close()
	for statement := range strings.SplitSeq(Schema, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	for _, t := range tables {
		if err := t.fill(ctx, db, rows, out); err != nil {
			return err
		}
	}
	return nil
}

func create(ctx context.Context, dsn string, rows int64) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return errors.New("the DSN of the database is malformed")
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+Database(rows)); err != nil {
		return fmt.Errorf("create database %s: %w", Database(rows), err)
	}
	return nil
}

func (t table) fill(ctx context.Context, db *sql.DB, rows int64, out io.Writer) error {
	loaded, verified, err := t.progress(ctx, db)
	if err != nil {
		return err
	}
	if verified {
		fmt.Fprintf(out, "%s: %d rows, verified before\n", t.name, rows)
		return nil
	}
	if err := t.load(ctx, db, loaded, rows, out); err != nil {
		return err
	}
	return t.verify(ctx, db, rows, out)
}

func (t table) progress(ctx context.Context, db *sql.DB) (loaded int64, verified bool, err error) {
	_, err = db.ExecContext(ctx, "INSERT IGNORE INTO seed_progress (name) VALUES (?)", t.name)
	if err == nil {
		err = db.QueryRowContext(ctx, "SELECT loaded, verified FROM seed_progress WHERE name = ?", t.name).
			Scan(&loaded, &verified)
	}
	if err != nil {
		return 0, false, fmt.Errorf("read how far %s is: %w", t.name, err)
	}
	return loaded, verified, nil
}

func (t table) load(ctx context.Context, db *sql.DB, loaded, rows int64, out io.Writer) error {
	progress := measure.NewProgress(out, t.name, loaded, rows)
	for loaded < rows {
		last := min(loaded+chunk, rows)
		if err := t.loadChunk(ctx, db, loaded, last); err != nil {
			return fmt.Errorf("load %s, rows %d to %d; run seed again to go on: %w", t.name, loaded+1, last, err)
		}
		progress.Add(last - loaded)
		loaded = last
	}
	return nil
}

func (t table) loadChunk(ctx context.Context, db *sql.DB, loaded, last int64) error {
	source := "belay-" + t.name
	mysql.RegisterReaderHandler(source, func() io.Reader { return rowsOf(loaded+1, last, t.row) })
	defer mysql.DeregisterReaderHandler(source)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	done, err := tx.ExecContext(ctx, fmt.Sprintf(
		"LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE %s CHARACTER SET ascii (%s)", source, t.name, t.columns))
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != last-loaded {
		return errors.Join(err, fmt.Errorf("%d rows were taken instead of %d", n, last-loaded))
	}
	_, err = tx.ExecContext(ctx, "UPDATE seed_progress SET loaded = ? WHERE name = ? AND loaded = ?", last, t.name, loaded)
	if err != nil {
		return err
	}
	return tx.Commit()
}

func (t table) verify(ctx context.Context, db *sql.DB, rows int64, out io.Writer) error {
	fmt.Fprintf(out, "%s: verifying\n", t.name)
	var right int64
	if err := db.QueryRowContext(ctx, t.check, rows).Scan(&right); err != nil {
		return fmt.Errorf("verify %s: %w", t.name, err)
	}
	if right != rows {
		return fmt.Errorf("verify %s: %d of %d rows are as they should be; remove the database %s and seed again",
			t.name, right, rows, Database(rows))
	}
	if _, err := db.ExecContext(ctx, "UPDATE seed_progress SET verified = TRUE WHERE name = ?", t.name); err != nil {
		return fmt.Errorf("note that %s is verified: %w", t.name, err)
	}
	fmt.Fprintf(out, "%s: %d rows, verified\n", t.name, rows)
	return nil
}
