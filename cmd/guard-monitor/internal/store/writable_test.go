package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// Writable writes, so that it finds a disk that takes nothing.
func TestWritable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := frames(t, path)
	if err := s.Writable(t.Context()); err != nil {
		t.Errorf("Writable: %v", err)
	}
	if after := frames(t, path); after <= before {
		t.Errorf("the log has %d bytes as before: nothing was written", after)
	}
}

// frames returns the size of the log of a database.
func frames(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
