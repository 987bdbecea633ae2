package anybroker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// A monitor takes each event at the second attempt, and never the one called bad.
type monitor struct {
	mu    sync.Mutex
	asked map[string]int
	took  chan string
}

func (m *monitor) PublishRaw(_ context.Context, body []byte) error {
	var ev notify.Event
	if err := ev.UnmarshalJSON(body); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[ev.ID]++
	switch {
	case ev.Key == "bad":
		return fmt.Errorf("%w: too large", notify.ErrInvalidEvent)
	case m.asked[ev.ID] < 2:
		return errors.New("away")
	}
	m.took <- ev.ID
	return nil
}

// TestEventsReachTheMonitor: from the outbox over the broker to the monitor, which is away at
// first. What it rejects holds nothing up.
func TestEventsReachTheMonitor(t *testing.T) {
	db, err := gorm.Open(sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: filepath.Join(t.TempDir(), "orders.db")}))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := outbox.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	messages, err := broker.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{asked: make(map[string]int), took: make(chan string, 10)}
	rejected := make(chan string, 10)
	var forwarding sync.WaitGroup
	forwarding.Go(func() { Forward(messages, m, func(m *message.Message, _ error) { rejected <- m.UUID }) })
	box, err := outbox.New(db, outbox.Config{Relay: Publisher{To: broker}})
	if err != nil {
		t.Fatal(err)
	}
	for id, key := range map[string]string{"1": "order:1", "2": "bad", "3": "order:3"} {
		if err := box.Publish(t.Context(), notify.Event{
			ID: id, Service: "orders", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused, Key: key,
			CaughtAt: time.Now(), Count: 1,
		}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{<-m.took: true, <-m.took: true}
	if bad := <-rejected; bad != "2" || !got["1"] || !got["3"] {
		t.Errorf("the monitor took %v and rejected %s", got, bad)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := broker.Close(); err != nil {
		t.Error(err)
	}
	forwarding.Wait()
}
