package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/internal/testwait"
)

// A backup under writes is whole, has what was stored before it began, and holds up nobody.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "m.db"), filepath.Join(dir, "copy.db")
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	var stored atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := s.Add(t.Context(), event(fmt.Sprint("e-", n)), nil, ""); err != nil {
				t.Error(err)
				return
			}
			stored.Store(int64(n) + 1)
		}
	}()
	testwait.Until(t, "some events are stored", func() bool { return stored.Load() >= 20 })
	before := stored.Load()
	if err := store.Backup(t.Context(), path, to); err != nil {
		t.Fatal(err)
	}
	stop()
	<-done
	copied, err := store.Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	all, err := copied.Events(t.Context(), store.EventFilter{Limit: store.MaxRows})
	if err != nil || int64(len(all)) < before {
		t.Errorf("the copy has %d events, %v, want at least %d", len(all), err, before)
	}
	if added, err := copied.Add(t.Context(), event("e-0"), nil, ""); added || err != nil {
		t.Errorf("an event of the copy is added again: %v, %v", added, err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	db, err := sql.Open("sqlite", to)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var vacuum int
	if err := db.QueryRowContext(t.Context(), `PRAGMA auto_vacuum`).Scan(&vacuum); err != nil || vacuum != 2 {
		t.Errorf("auto_vacuum = %d, %v: the copy never gives room back", vacuum, err)
	}
}

// A backup overwrites nothing, and leaves nothing behind when it fails.
func TestBackupRefuses(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "m.db"), filepath.Join(dir, "copy.db")
	if err := store.Backup(t.Context(), path, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a file that is not there: %v", err)
	}
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Backup(t.Context(), path, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto a file that is there: %v", err)
	}
	if text, err := os.ReadFile(to); string(text) != "mine" {
		t.Errorf("the other file has %q, %v", text, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Backup(cancelled, path, filepath.Join(dir, "other.db")); err == nil {
		t.Error("a backup that was stopped succeeded")
	}
	left, err := filepath.Glob(filepath.Join(dir, "other.db*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
