package outbox_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// A table that a released version made, with rows that it wrote, is worked off; and
// such a version's rows find room in a table of today: instances of both run beside
// each other.
func TestTablesOfReleases(t *testing.T) {
	dirs, err := filepath.Glob("testdata/v*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("found %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			testdb.EachWithPostgres(t, func(t *testing.T, connect func(opts ...gorm.Option) *gorm.DB) {
				db := connect()
				mustExec(t, db, read(t, dir, db.Name()+".sql"))
				t.Run("table of then", func(t *testing.T) { passesOn(t, migrated(t, db), dir) })
				mustExec(t, db, "DROP TABLE belay_outbox")
				t.Run("table of today", func(t *testing.T) { passesOn(t, migrated(t, db), dir) })
			})
		})
	}
}

// passesOn inserts the events of the release as it did, each twice, and publishes one
// of today. It expects each to be published once, as it was.
func passesOn(t *testing.T, db *gorm.DB, dir string) {
	var inserts map[string]string
	if err := json.Unmarshal([]byte(read(t, dir, "inserts.json")), &inserts); err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for line := range strings.Lines(read(t, "../testdata", filepath.Base(dir), "events.jsonl")) {
		var ev notify.Event
		if strings.Contains(line, `"verdict"`) && json.Unmarshal([]byte(line), &ev) == nil && want[ev.ID] == "" {
			want[ev.ID] = strings.TrimSpace(line)
		}
	}
	if len(want) == 0 {
		t.Fatal("the release has no events")
	}
	for id, body := range want {
		for range 2 {
			mustExec(t, db, inserts[db.Name()], id, body)
		}
	}
	var relayed rawRecorder
	o := open(t, db, outbox.Config{Relay: &relayed})
	publish(t, o, 1)
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, body := range want {
		if !relayed.has(body) {
			t.Errorf("event %s was not published as it was", id)
		}
	}
	if got := len(relayed.bodies); got != len(want)+1 {
		t.Errorf("%d events were published, want %d", got, len(want)+1)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mustExec(t *testing.T, db *gorm.DB, stmt string, args ...any) {
	t.Helper()
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.ExecContext(t.Context(), stmt, args...); err != nil {
		t.Fatal(err)
	}
}
