package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/belaygo/belay/internal/testwait"
)

// A backup is taken while events come, and restored after the file is lost. What was stored
// before the backup is there, and is not stored twice when it is sent again. What was stored
// after it is lost, and what was not stored comes again.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, saved := filepath.Join(dir, "monitor.db"), filepath.Join(dir, "backup.db")
	p := startIngest(t, db)
	w := p.publisher(ingestToken)
	var stored, stop atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := int64(0); stop.Load() == 0; n++ {
			if err := w.Publish(t.Context(), event(fmt.Sprint("backup-", n))); err != nil {
				t.Error(err)
				return
			}
			stored.Store(n + 1)
		}
	}()
	testwait.Until(t, "some events are stored", func() bool { return stored.Load() >= 10 })
	before := stored.Load()
	b := start(t, nil, "backup", "-db", db, saved)
	if code := b.wait(); code != 0 {
		t.Fatalf("backup: code %d", code)
	}
	after := stored.Load()
	testwait.Until(t, "events are stored after the backup, too", func() bool { return stored.Load() > after+1 })
	stop.Store(1)
	<-done
	check(t, p.cmd.Process.Kill())
	p.wait()

	for _, end := range []string{"", "-wal", "-shm"} {
		check(t, os.Remove(db+end))
	}
	check(t, os.Rename(saved, db))
	p = startIngest(t, db)
	for n := range before {
		if code, _ := p.get(fmt.Sprint("/api/v1/events/backup-", n)); code != 200 {
			t.Errorf("event %d of %d before the backup: code %d", n, before, code)
		}
	}
	if code, _ := p.get(fmt.Sprint("/api/v1/events/backup-", after+1)); code != 404 {
		t.Errorf("an event after the backup: code %d", code)
	}
	w = p.publisher(ingestToken)
	for _, n := range []int64{0, after + 1} {
		check(t, w.Publish(t.Context(), event(fmt.Sprint("backup-", n))))
	}
	for _, line := range []string{`belay_ingest_requests_total{result="repeated"} 1`, `belay_ingest_requests_total{result="stored"} 1`} {
		if !p.metric(line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	p.stop(syscall.SIGTERM)
}
