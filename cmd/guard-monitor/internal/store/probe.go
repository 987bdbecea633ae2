package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Probe returns nil if the database in the file path can be written, or if there is none
// and its folder can take one. It leaves both as they are. A guard-monitor may be running.
func Probe(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		f, err := os.CreateTemp(filepath.Dir(path), ".guard-monitor-*")
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(path, "immediate"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := schemaVersion(ctx, db); err != nil {
		return fmt.Errorf("open store %q: %w", path, err)
	}
	tx, err := db.BeginTx(ctx, nil) // which is to write
	if err != nil {
		return fmt.Errorf("write store %q: %w", path, err)
	}
	return tx.Rollback()
}
