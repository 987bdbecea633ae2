package outbox_test

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

func TestWithoutTableEventsGoStraightToTheRelay(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		drop(t, db)
		var relay recorder
		o := open(t, db, outbox.Config{Relay: &relay})
		publish(t, o, 1)
		if got := relay.took(1); got[0] != 1 {
			t.Errorf("taken %d times, want once", got[0])
		}
		metrics(t, o, `
			belay_outbox_direct_total{name="outbox"} 1
			belay_outbox_lost_total{name="outbox"} 0
			belay_outbox_stored_total{name="outbox"} 0`)
	})
}

func drop(t *testing.T, db *gorm.DB) {
	t.Helper()
	if err := db.Exec("DROP TABLE belay_outbox").Error; err != nil {
		t.Fatal(err)
	}
}

// The table is locked by somebody else, so that the insert hangs until its
// share of the limit is over; what is left is enough to publish.
func TestHangingTableLeavesTimeToPublishDirectly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *gorm.DB) {
		pool, err := db.DB()
		if err != nil {
			t.Fatal(err)
		}
		blocker, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer blocker.Close()
		lock, unlock := "LOCK TABLES belay_outbox WRITE", "UNLOCK TABLES"
		switch db.Name() {
		case "sqlite":
			lock, unlock = "BEGIN IMMEDIATE", "ROLLBACK"
		case "postgres":
			lock, unlock = "BEGIN; LOCK TABLE belay_outbox", "ROLLBACK"
		}
		if _, err := blocker.ExecContext(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		var relay recorder
		o := open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{WriteTimeout: 2 * time.Second}))
		publish(t, o, 1)
		if got := relay.took(1); got[0] != 1 {
			t.Errorf("taken %d times, want once", got[0])
		}
		if _, err := blocker.ExecContext(context.WithoutCancel(t.Context()), unlock); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEventThatWouldBeLostIsLoggedWhole(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		drop(t, db)
		for name, relay := range map[string]notify.Publisher{
			"no relay":     nil,
			"broken relay": notify.PublisherFunc(func(context.Context, notify.Event) error { return errDown }),
		} {
			t.Run(name, func(t *testing.T) {
				var log testlog.Buffer
				o := open(t, db, outbox.Config{Relay: relay, Logger: slog.New(slog.NewJSONHandler(&log, nil)), Name: "shop"})
				err := o.Publish(t.Context(), event(7))
				if err == nil || !strings.Contains(err.Error(), "belay_outbox") {
					t.Errorf("err = %v, want one that names the table", err)
				}
				if relay != nil && !errors.Is(err, errDown) {
					t.Errorf("err = %v, want %v as well", err, errDown)
				}
				for _, want := range []string{`"level":"ERROR"`, event(7).ID, "order:中国 🧗", `"verdict":"overlap"`} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log lacks %s: %s", want, log.String())
					}
				}
				metrics(t, o, `
					belay_outbox_direct_total{name="shop"} 0
					belay_outbox_lost_total{name="shop"} 1`)
			})
		}
	})
}

// A lost event is logged, also if nobody gave a Logger.
func TestLostEventIsLoggedWithoutALogger(t *testing.T) {
	var buffer testlog.Buffer
	before, out, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(&buffer, nil)))
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(out) // which SetDefault leaves as it is
		log.SetFlags(flags)
	})
	db := openSQLite(t)
	drop(t, db)
	o := open(t, db, outbox.Config{})
	if err := o.Publish(t.Context(), event(7)); err == nil {
		t.Error("published without a table")
	}
	if !strings.Contains(buffer.String(), event(7).ID) || !strings.Contains(buffer.String(), "level=ERROR") {
		t.Errorf("logged %q, want the event at level error", buffer.String())
	}
}

func TestInvalidEventIsRefusedAndLogged(t *testing.T) {
	db := openSQLite(t)
	var log testlog.Buffer
	var relay recorder
	relay.failWith(func(ev notify.Event) error { return ev.Validate() })
	o := open(t, db, outbox.Config{Relay: &relay, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	bad := event(1)
	bad.Count = 0
	if err := o.Publish(t.Context(), bad); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("err = %v, want ErrInvalidEvent", err)
	}
	if !strings.Contains(log.String(), bad.ID) {
		t.Errorf("the log lacks the event: %s", log.String())
	}
}
