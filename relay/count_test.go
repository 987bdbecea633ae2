package relay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// What waits, is parked, dead and undecided is counted apart, and a message behind a dead letter is
// not the oldest one.
func TestCount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		if b := counted(t, db); b.Waiting+b.Parked+b.Dead+b.Undecided != 0 || b.Oldest+b.OldestDead != 0 || !strings.HasSuffix(b.Table, "belay_message") {
			t.Errorf("an empty table: %+v", b)
		}
		const hour = int64(time.Hour / time.Millisecond)
		store(t, db, row("late", 0), row("late", 1))
		if err := db.Exec("UPDATE belay_message SET created_at = created_at - ?", 5*hour).Error; err != nil {
			t.Fatal(err)
		}
		r := start(t, db, relay.WithPause(relay.Quick(relay.Config{Routes: []relay.Route{{
			Topic: relay.Others, Until: time.Hour,
			Handle: func(_ context.Context, m relay.Message) error {
				if m.Key == "refused" {
					return relay.ErrRejected
				}
				return errors.New("not now")
			},
		}}}), time.Hour))
		store(t, db, row("refused", 0), row("slow", 0), row("slow", 1))
		testwait.Until(t, "all keys are parked", func() bool { return count(t, db, "belay_parked") == 3 })
		for _, statement := range []string{
			"UPDATE belay_parked SET retry_at = retry_at - ? WHERE dead = 1", "UPDATE belay_message SET created_at = created_at - ? WHERE message_id = 'slow/0'",
		} {
			if err := db.Exec(statement, 2*hour).Error; err != nil {
				t.Fatal(err)
			}
		}
		b := counted(t, db)
		if b.Waiting != 5 || b.Parked != 3 || b.Dead != 2 || b.Undecided != 1 {
			t.Errorf("counted: %+v", b)
		}
		if b.Oldest < 2*time.Hour || b.Oldest > 3*time.Hour || b.OldestDead < 2*time.Hour || b.OldestDead > 3*time.Hour {
			t.Errorf("ages: %+v", b)
		}
		for name, want := range map[string]float64{"belay_relay_backlog": 5, "belay_relay_parked_keys": 3, "belay_relay_dead_keys": 2, "belay_relay_undecided_keys": 1} {
			if got := testmetric.Sum(t, r, name); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if age := testmetric.Sum(t, r, "belay_relay_oldest_waiting_seconds"); age < 7200 || age > 10800 {
			t.Errorf("the oldest message waits since %v seconds", age)
		}
	})
}

func counted(t *testing.T, db *gorm.DB) relay.Backlog {
	t.Helper()
	b, err := relay.Count(bg, db)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Find returns what List does, and knows a message that nobody waits for.
func TestFind(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		start(t, db, to(publish(func(relay.Message) error { return fmt.Errorf("%w: no", relay.ErrRejected) })))
		store(t, db, row("a", 0), row("a", 1))
		testwait.Until(t, "it is a dead letter", func() bool { return len(list(t, db)) == 1 })
		w, err := relay.Find(bg, db, "a/0")
		if err != nil || w != list(t, db)[0] || !w.Dead || w.Undecided {
			t.Errorf("found %+v, %v", w, err)
		}
		for _, id := range []string{"a/1", "b/0"} {
			if _, err := relay.Find(bg, db, id); !errors.Is(err, relay.ErrNotWaiting) {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}
