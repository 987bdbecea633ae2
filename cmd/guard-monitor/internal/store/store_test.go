package store_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpenPath(t *testing.T) {
	for _, name := range []string{"plain.db", "with space.db", "q?x=1&_pragma=y.db", "100%.db", "ключ#1.db", ":memory:"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			s := openStore(t, path)
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("Ping: %v", err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := info.Mode().Perm(), os.FileMode(0o600); got != want {
				t.Errorf("mode %v, want %v", got, want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name, path, want string
		prepare          func(t *testing.T, path string)
	}{
		{"no name", "", "no file name", nil},
		{"missing folder", filepath.Join(dir, "missing", "m.db"), "no such file or directory", nil},
		{"folder", dir, "is a directory", nil},
		{"no database", filepath.Join(dir, "text.db"), "not a database", func(t *testing.T, path string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"another program's", filepath.Join(dir, "shop.db"), "another program's", func(t *testing.T, path string) {
			t.Helper()
			exec(t, path, `CREATE TABLE orders (no TEXT)`)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.prepare != nil {
				tt.prepare(t, tt.path)
			}
			s, err := store.Open(t.Context(), tt.path)
			if err == nil {
				s.Close()
				t.Fatal("Open succeeded")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open: %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestOpenRefusesNewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	closeStore(t, openStore(t, path))
	exec(t, path, `INSERT INTO schema_version VALUES (9999, 0)`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	s, err := store.Open(t.Context(), path)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, store.ErrNewerSchema) {
		t.Fatalf("Open: %v, want %v", err, store.ErrNewerSchema)
	}
	if !strings.Contains(err.Error(), "9999") || !strings.Contains(err.Error(), path) {
		t.Errorf("error %q does not name version and file", err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != string(before) {
		t.Error("the database was changed")
	}
}

// Several processes may be started on a new file at once.
func TestOpenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	const n = 8
	errs := make(chan error, n)
	for range n {
		go func() {
			s, err := store.Open(t.Context(), path)
			if err == nil {
				err = errors.Join(s.Ping(t.Context()), s.Close())
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestPragmas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	closeStore(t, openStore(t, path))
	db := raw(t, path)
	for pragma, want := range map[string]string{"journal_mode": "wal", "auto_vacuum": "2"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", pragma, got, want)
		}
	}
}

func TestClose(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "m.db"))
	closeStore(t, s)
	closeStore(t, s)
	if err := s.Ping(t.Context()); err == nil {
		t.Error("Ping after Close succeeded")
	}
	if _, err := s.Add(t.Context(), event("1"), nil, ""); err == nil {
		t.Error("Add after Close succeeded")
	}
}

func openStore(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// raw opens the file behind the store's back.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t *testing.T, path, stmt string) {
	t.Helper()
	db := raw(t, path)
	if _, err := db.ExecContext(t.Context(), stmt); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
