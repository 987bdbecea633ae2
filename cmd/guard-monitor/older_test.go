package main_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands beside an older guard-monitor leave its file as it is: that would not start again after
// they had migrated it. What backup writes is a file of the older one.
func TestCommandsBesideAnOlderMonitor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, copied := filepath.Join(dir, "monitor.db"), filepath.Join(dir, "copy.db")
	olderStore(t, db)
	backup := start(t, nil, "backup", "-db", db, copied)
	if code := backup.wait(); code != 0 {
		t.Fatalf("backup: code %d, %q", code, backup.stderr)
	}
	for _, args := range [][]string{
		{"tail", "-follow=false"}, {"export", filepath.Join(dir, "site")}, {"forget", "orders"},
		{"dlq", "list", "-amqp-url", deadURL}, {"dlq", "replay", "-amqp-url", deadURL, "all"},
	} {
		for _, file := range []string{db, copied} {
			p := start(t, []string{"BELAY_MONITOR_DB=" + file}, args...)
			if code := p.wait(); code != 1 || !strings.Contains(p.stderr.String(), "schema is older") {
				t.Errorf("%s: code %d, %q, %q", args, code, p.stdout, p.stderr)
			}
		}
	}
}

// olderStore writes the file of the first release, which has an older schema.
func olderStore(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open("internal/store/testdata/v0.1.0-rc.1/monitor.db.gz")
	check(t, err)
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	check(t, err)
	all, err := io.ReadAll(zipped)
	check(t, err)
	check(t, os.WriteFile(path, all, 0o600))
}
