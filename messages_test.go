package belay_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/relay"
)

// guard-monitor learns how many messages wait, and of each message that becomes a dead
// letter.
func TestDeadLetterIsReported(t *testing.T) {
	type report struct {
		Verdict, Instance string
		Message           *struct{ ID, Topic string }
		Messages          struct {
			Table   string
			Waiting int
		}
	}
	monitor, reports := takesAll[report](t)
	db := testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	testdb.WantNil(t, relay.Migrate(t.Context(), db))
	sender := open(t, belay.Config{Service: "shop", DB: db, Engine: memlock.New()})
	testdb.WantNil(t, sender.Guard.Apply(t.Context(), "order:7", guard.Send(guard.Message{Topic: "mail", Body: []byte("hello")})))
	open(t, belay.Config{
		Service: "shop", DB: db, Engine: memlock.New(), Monitor: monitor, MonitorToken: "0123456789abcdef",
		Messages: []relay.Route{{
			Topic: relay.Others, Until: time.Hour, Handle: func(context.Context, relay.Message) error { return relay.ErrRejected },
		}},
	})
	counted, dead := false, false
	for late := time.After(limit); !counted || !dead; {
		select {
		case got := <-reports:
			counted = counted || got.Messages.Table == "belay_message" && got.Messages.Waiting == 1
			dead = dead || got.Verdict == "dead_letter" && got.Message != nil && got.Message.Topic == "mail" && got.Instance != ""
		case <-late:
			t.Fatalf("counted: %v, reported: %v", counted, dead)
		}
	}
}

// takesAll serves a guard-monitor that takes each event and heartbeat. It returns its URL, and their data.
func takesAll[T any](t *testing.T) (url string, reports chan T) {
	t.Helper()
	reports = make(chan T, 100)
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent struct {
			ID   string
			Data T
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		reports <- sent.Data
		_ = json.NewEncoder(w).Encode(map[string]string{"taken": sent.ID})
	}))
	t.Cleanup(monitor.Close)
	return monitor.URL, reports
}
