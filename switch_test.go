package belay_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

// TestSwitchIsReported: guard-monitor learns which engine keeps the locks, and of each switch.
func TestSwitchIsReported(t *testing.T) {
	type known struct {
		Epoch   int
		To, By  string
		Settled bool
	}
	heard := make(chan known, 100)
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var beat struct {
			ID   string
			Data struct{ Switch known }
		}
		if err := json.NewDecoder(r.Body).Decode(&beat); err != nil {
			t.Error(err)
		}
		heard <- beat.Data.Switch
		_ = json.NewEncoder(w).Encode(map[string]string{"taken": beat.ID})
	}))
	defer monitor.Close()
	db := testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	pool, err := db.DB()
	testdb.WantNil(t, err)
	testdb.WantNil(t, sqllock.Migrate(t.Context(), pool, sqllock.SQLite))
	source, err := sqllock.NewSource(pool, sqllock.SQLite, "shop")
	testdb.WantNil(t, err)
	engine, err := switchlock.New(switchlock.Config{
		Source: source, Engines: map[string]lockengine.Engine{"a": memlock.New(), "b": memlock.New()}, First: "a",
		Lease: 500 * time.Millisecond, TTL: 500 * time.Millisecond,
	})
	testdb.WantNil(t, err)
	t.Cleanup(func() { testdb.WantNil(t, engine.Close(context.Background())) })
	open(t, belay.Config{Service: "shop", DB: db, Engine: engine, Monitor: monitor.URL, MonitorToken: "0123456789abcdef"})

	await := func(want known) {
		t.Helper()
		for late := time.After(limit); ; {
			select {
			case got := <-heard:
				if got == want {
					return
				}
			case <-late:
				t.Fatalf("no heartbeat says %+v", want)
			}
		}
	}
	await(known{1, "a", "first process", true})
	_, err = engine.To(t.Context(), switchlock.Change{To: "b", By: "alice"})
	testdb.WantNil(t, err)
	await(known{2, "b", "alice", false})
	await(known{2, "b", "alice", true})
}
