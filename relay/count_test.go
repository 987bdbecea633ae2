package relay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// Messages, parked keys, dead letters and undecided ones are counted apart, and a message behind a dead letter is
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

// If the 10,000 oldest messages are behind dead letters, the age is that of the last of these, which no
// other message exceeds. It is 0 only if there is no other.
func TestOldestBehindDeadLetters(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	store(t, db, rowsOf("dead", 9_999)...)
	for _, s := range []string{
		"UPDATE belay_message SET created_at = created_at - 7200000",
		"INSERT INTO belay_parked (key_sum, lane, message_id, attempts, retry_at, dead, reason) " +
			"SELECT key_sum, lane, message_id, 1, created_at, 1, '' FROM belay_message WHERE message_id = 'dead/0'",
	} {
		if err := db.Exec(s).Error; err != nil {
			t.Fatal(err)
		}
	}
	if b := counted(t, db); b.Waiting != 9_999 || b.Oldest != 0 {
		t.Errorf("no other message: %+v", b)
	}
	store(t, db, row("dead", 9_999))
	if err := db.Exec("UPDATE belay_message SET created_at = created_at - 3600000 WHERE message_id = 'dead/9999'").Error; err != nil {
		t.Fatal(err)
	}
	store(t, db, row("slow", 0))
	if b := counted(t, db); b.Oldest < time.Hour || b.Oldest >= 2*time.Hour {
		t.Errorf("behind 10,000: %+v", b)
	}
}

// Counting and listing wait for no lock, whatever isolation level the sessions have.
func TestCountLocksNothing(t *testing.T) {
	t.Parallel()
	dsn := teststack.MySQL(t)
	db := migrated(t, testdb.OpenMySQL(t, dsn))
	strict := testdb.OpenMySQL(t, dsn+"&innodb_lock_wait_timeout=1")
	pool, err := strict.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1) // the session that is set
	if err := strict.Exec("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE").Error; err != nil {
		t.Fatal(err)
	}
	store(t, db, row("a", 0))
	if err := db.Exec("INSERT INTO belay_parked (key_sum, lane, message_id, attempts, retry_at, dead, reason) " +
		"SELECT key_sum, lane, message_id, 1, created_at, 1, '' FROM belay_message").Error; err != nil {
		t.Fatal(err)
	}
	tx := db.Begin()
	defer tx.Rollback()
	for _, s := range []string{"UPDATE belay_parked SET attempts = 2", "UPDATE belay_message SET created_at = created_at - 1"} {
		if err := tx.Exec(s).Error; err != nil {
			t.Fatal(err)
		}
	}
	if b := counted(t, strict); b.Dead != 1 || b.Waiting != 1 {
		t.Errorf("counted %+v", b)
	}
	if w := list(t, strict); len(w) != 1 {
		t.Errorf("listed %+v", w)
	}
	if _, err := relay.Find(bg, strict, "a/0"); err != nil {
		t.Error(err)
	}
}
