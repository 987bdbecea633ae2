package webhook_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/webhook"
)

// Services share a table, and the token is not for one of them: its events wait, those of
// the others do not.
func TestRefusedServiceHoldsUpNoOther(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	m.answers(func(w http.ResponseWriter, r *http.Request) {
		ev := m.last()
		if ev.Service == "stranger" {
			says(http.StatusForbidden, `{"error":"not for the service stranger"}`)(w, r)
			return
		}
		says(http.StatusAccepted, `{"taken":"`+ev.ID+`"}`)(w, r)
	})
	db := openTable(t)
	store(t, db, "stranger", 1, 2, 3, 4)
	store(t, db, "orders", 5, 6)

	var logged testlog.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	box, err := outbox.New(db, outbox.Config{Relay: newPublisher(t, m.URL, webhook.Config{}), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the events of the other service are taken", func() bool { return count(t, db) == 4 })
	if strings.Contains(logged.String(), "events are not relayed") {
		t.Errorf("the relay paused for refused events\n%s", logged.String())
	}
	if !strings.Contains(logged.String(), "service=stranger") || !strings.Contains(logged.String(), "not for the service stranger") {
		t.Errorf("the log does not name the service and the reason\n%s", logged.String())
	}
	if n := strings.Count(logged.String(), "level=WARN"); n != 1 {
		t.Errorf("4 refused events of a service are logged %d times, want once\n%s", n, logged.String())
	}

	m.answers(nil) // the token is for the service now
	if err := db.Exec("UPDATE belay_outbox SET retry_at = 0").Error; err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the refused events are taken", func() bool { return count(t, db) == 0 })
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Close does not wait for events that are refused: they stay for the next process.
func TestCloseLeavesRefusedEvents(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	m.answers(says(http.StatusRequestEntityTooLarge, "<html>too large</html>")) // of a proxy
	db := openTable(t)
	store(t, db, "orders", 1, 2)
	box, err := outbox.New(db, outbox.Config{
		Relay: newPublisher(t, m.URL, webhook.Config{}), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := box.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := count(t, db); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// last returns the event that came last.
func (m *monitor) last() (ev notify.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = ev.UnmarshalJSON(m.bodies[len(m.bodies)-1])
	return ev
}

func openTable(t *testing.T) *gorm.DB {
	t.Helper()
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "outbox.db"))
	if err := outbox.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

// store leaves events of a service in the table.
func store(t *testing.T, db *gorm.DB, service string, events ...int) {
	t.Helper()
	box, err := outbox.New(db, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range events {
		ev := event(n)
		ev.Service = service
		if err := box.Publish(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *gorm.DB) (n int) {
	t.Helper()
	if err := db.Raw("SELECT COUNT(*) FROM belay_outbox").Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}
