package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Backup copies the database in the file path to a new file, which only its owner can read.
// The copy has all that was stored before Backup began. A guard-monitor may be running, and
// goes on storing meanwhile. It returns nil once the copy is checked and on disk; until
// then, to does not exist. It fails if to exists.
func Backup(ctx context.Context, path, to string) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err // SQLite would create it
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	partial := to + ".partial"
	// SQLite writes into an empty file; it would give a new one a mode for everybody.
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(partial)
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if err := vacuumInto(ctx, path, partial); err != nil {
		return fmt.Errorf("back up store %q: %w", path, err)
	}
	if err := verify(ctx, partial); err != nil {
		return fmt.Errorf("check backup: %w", err)
	}
	if err := flush(partial, os.O_RDWR); err != nil {
		return err
	}
	if err := os.Rename(partial, to); err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // it flushes no folder
		return nil
	}
	return flush(filepath.Dir(to), os.O_RDONLY)
}

// vacuumInto reads path in one transaction, which holds up no writer.
func vacuumInto(ctx context.Context, path, to string) error {
	return onDatabase(path, func(db *sql.DB) error {
		if _, err := schemaVersion(ctx, db); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, `VACUUM INTO ?`, to)
		return err
	})
}

// verify reads a database whole.
func verify(ctx context.Context, path string) error {
	return onDatabase(path, func(db *sql.DB) error {
		var result string
		if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&result); err != nil {
			return err
		}
		if result != "ok" {
			return errors.New(result)
		}
		return nil
	})
}

func onDatabase(path string, f func(*sql.DB) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(path, "deferred"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(f(db), db.Close())
}

// flush waits until a file or a folder is on disk.
func flush(path string, mode int) error {
	f, err := os.OpenFile(path, mode, 0) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
