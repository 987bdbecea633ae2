package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// TestProbe leaves all as it is: a file that is not there, one that is, and one that is of
// another kind.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "monitor.db")
	want := func(path string, fits bool, files int) {
		t.Helper()
		if err := store.Probe(t.Context(), path); (err == nil) != fits {
			t.Errorf("Probe of %s: %v", path, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != files {
			t.Errorf("the folder has %v, %v", entries, err)
		}
	}
	want(path, true, 0)
	want(filepath.Join(dir, "missing", "monitor.db"), false, 0)
	st, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	want(path, true, 3) // beside a guard-monitor that runs
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	want(path, true, 1)
	if err := os.WriteFile(path, []byte("no database, but a text of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(path, false, 1)
}
