package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNewerSchema says that a later version of guard-monitor wrote the database.
	ErrNewerSchema = errors.New("store: schema is newer than this program knows")
	// ErrOlderSchema says that an earlier version of guard-monitor wrote the database.
	ErrOlderSchema = errors.New("store: schema is older than that of this program, whose serve migrates it")
)

// applicationID marks the file as ours ("Bely"): another program's database is
// not to be altered because of a mistyped path.
const applicationID = 0x42656c79

//go:embed migrations/*.sql
var migrations embed.FS

// migrate applies the migrations that db lacks, all or none. The nth file in
// order of name is version n; files that were released are never changed.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do

	have, err := schemaVersion(ctx, tx)
	if err != nil {
		return err
	}
	if have == 0 {
		if err := claim(ctx, tx); err != nil {
			return err
		}
	}
	for version := have + 1; version <= len(files); version++ {
		if err := apply(ctx, tx, version, files[version-1].Name()); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// checkCurrent returns nil if db lacks no migration.
func checkCurrent(ctx context.Context, db *sql.DB) error {
	have, err := schemaVersion(ctx, db)
	if err != nil {
		return err
	}
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	if have < len(files) {
		return fmt.Errorf("%w: version %d, want %d", ErrOlderSchema, have, len(files))
	}
	return nil
}

// claim makes an empty database ours.
func claim(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d;
		CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT`, applicationID))
	return err
}

func apply(ctx context.Context, tx *sql.Tx, version int, name string) error {
	stmts, err := migrations.ReadFile("migrations/" + name)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, string(stmts)); err != nil {
		return fmt.Errorf("apply migration %s: %w", name, err)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO schema_version (version, applied_at) VALUES (?, ?)`,
		version, time.Now().UnixMicro())
	return err
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// schemaVersion returns the version of the database, 0 for an empty one. It
// refuses a version that this program does not know, and what is not ours.
func schemaVersion(ctx context.Context, q querier) (int, error) {
	var tables, id, have int
	if err := q.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 {
		return 0, nil
	}
	if err := q.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return 0, err
	}
	if id != applicationID {
		return 0, errors.New("the file is another program's database")
	}
	if err := q.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM schema_version`).Scan(&have); err != nil {
		return 0, err
	}
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return 0, err
	}
	if have > len(files) {
		return 0, fmt.Errorf("%w: version %d, known up to %d", ErrNewerSchema, have, len(files))
	}
	return have, nil
}
