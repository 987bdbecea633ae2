package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// TestEngines: each engine grants a lock, and grants it again when it has been released.
func TestEngines(t *testing.T) {
	addrs := teststack.Redis(t)
	teststack.MySQL(t)
	five, err := startFive(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(five.close)
	for _, e := range engines(addrs, five, "") {
		if e.needs != "" && os.Getenv(e.needs) == "" {
			continue // a server that make test does not start
		}
		t.Run(e.name, func(t *testing.T) {
			o, err := e.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer o.close()
			key := teststack.Key(t, "engines")
			for _, owner := range []string{"me:1", "they:1"} {
				if err := o.cycle(t.Context(), key, owner); err != nil {
					t.Errorf("%s: %v", owner, err)
				}
			}
		})
	}
}

func TestCountCalls(t *testing.T) {
	const said = `[pid 7] fsync(3) = 0
[pid 7] fdatasync(4 <unfinished ...>
[pid 8] fdatasync(5) = 0
[pid 7] <... fdatasync resumed>) = 0
strace: Process 7 detached
`
	if n := countCalls(said); n != 3 {
		t.Errorf("counted %d calls, want 3", n)
	}
}

// TestProcesses: files of scripts/stack name more than the process.
func TestProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.pid")
	for text, want := range map[string]bool{"1 2920175 017cdb56\n": true, "1": true, "": false, "one": false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		pids, err := (&opened{pidFiles: []string{file}}).processes()
		if (err == nil) != want || want && pids[0] != 1 {
			t.Errorf("%q: %v, %v", text, pids, err)
		}
	}
}
