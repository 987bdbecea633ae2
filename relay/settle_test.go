package relay_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// A rejected message is a dead letter: it is listed, not tried again, and its followers wait until
// somebody decides. Meanwhile other keys go on.
func TestDecide(t *testing.T) {
	t.Parallel()
	for what, decide := range map[string]struct {
		by   func(db *gorm.DB) error
		want []string
	}{
		"retry": {func(db *gorm.DB) error { return retry(db, "a/1") }, idsOf("a", 4)},
		"drop":  {func(db *gorm.DB) error { return relay.Drop(bg, db, "a/1") }, []string{"a/0", "a/2", "a/3"}},
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, db *gorm.DB) {
				var r recorder
				r.failWith(func(m relay.Message) error {
					if m.ID == "a/1" {
						return fmt.Errorf("%w: too large, é", relay.ErrRejected)
					}
					return nil
				})
				start(t, db, to(&r))
				store(t, db, rowsOf("a", 4)...)
				testwait.Until(t, "it is a dead letter", func() bool { return len(list(t, db)) == 1 })
				w := list(t, db)[0]
				if w.ID != "a/1" || w.Key != "a" || w.Topic != "sale" || !w.Dead || w.Undecided || w.Attempts != 1 || w.Reason != `relay: message rejected: too large, \u00e9` {
					t.Errorf("listed: %+v", w)
				}
				// Only a decision counts, and not the time.
				if err := db.Exec("UPDATE belay_parked SET retry_at = 0").Error; err != nil {
					t.Fatal(err)
				}
				for n := range 5 {
					store(t, db, row("b", n))
					testwait.Until(t, "another key goes on", func() bool { return len(of(r.ids(), "b")) == n+1 })
				}
				if got := of(r.tries(), "a"); !slices.Equal(got, idsOf("a", 2)) {
					t.Errorf("tries: %v", got)
				}
				r.failWith(nil)
				if err := decide.by(db); err != nil {
					t.Fatal(err)
				}
				emptied(t, db)
				if got := of(r.ids(), "a"); !slices.Equal(got, decide.want) {
					t.Errorf("sent: %v", got)
				}
				testwait.Until(t, "no key is parked", func() bool { return count(t, db, "belay_parked") == 0 })
				if err := decide.by(db); !errors.Is(err, relay.ErrNotWaiting) {
					t.Errorf("decided again: %v", err)
				}
			})
		})
	}
}

// A message that is retried by a decision has its whole time again.
func TestRetryAfterUntil(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	store(t, db, row("a", 0))
	if err := db.Exec("UPDATE belay_message SET created_at = 0").Error; err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	cfg := to(publish(func(relay.Message) error { calls.Add(1); return nil }))
	cfg.Routes[0].Until = 1 << 40
	start(t, db, cfg)
	testwait.Until(t, "it is a dead letter", func() bool { return len(list(t, db)) == 1 })
	if calls.Load() != 0 {
		t.Error("it was called after its time")
	}
	if w := list(t, db)[0]; !w.Dead || !w.Undecided {
		t.Errorf("listed: %+v", w)
	}
	if err := retry(db, "a/0"); err != nil {
		t.Fatal(err)
	}
	emptied(t, db)
	if calls.Load() != 1 {
		t.Errorf("calls: %d", calls.Load())
	}
}

// A message that is only parked is tried at once, and its time does not begin anew: it may have taken
// effect, and nobody has asked.
func TestRetryOfAParkedMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		var calls atomic.Int64
		store(t, db, row("a", 0))
		start(t, db, relay.WithPause(to(publish(func(relay.Message) error { calls.Add(1); return errors.New("not now") })), time.Hour))
		testwait.Until(t, "it is parked", func() bool { return len(list(t, db)) == 1 })
		stored := list(t, db)[0].Time
		if err := retry(db, "a/0"); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "it is tried again", func() bool { w := list(t, db); return len(w) == 1 && w[0].Attempts == 2 })
		if w := list(t, db)[0]; !w.Time.Equal(stored) || calls.Load() != 2 {
			t.Errorf("stored at %v, now %v, after %d calls", stored, w.Time, calls.Load())
		}
	})
}

// A message that was seen as parked, and was given up since, may have taken effect: it is not sent
// again by what was seen.
func TestRetryOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		var calls atomic.Int64
		store(t, db, row("a", 0))
		r := start(t, db, relay.WithPause(to(publish(func(relay.Message) error { calls.Add(1); return errors.New("not now") })), time.Hour))
		testwait.Until(t, "it is parked", func() bool { return len(list(t, db)) == 1 })
		parked := list(t, db)[0]
		if err := r.Close(bg); err != nil {
			t.Fatal(err)
		}
		if err := db.Exec("UPDATE belay_parked SET dead = 2").Error; err != nil {
			t.Fatal(err)
		}
		if err := relay.Retry(bg, db, parked); !errors.Is(err, relay.ErrNotWaiting) {
			t.Errorf("retried as it was seen: %v", err)
		}
		given := list(t, db)[0]
		if !given.Undecided || !given.Time.Equal(parked.Time) || calls.Load() != 1 {
			t.Errorf("after that: %+v", given)
		}
		if err := relay.Retry(bg, db, given); err != nil {
			t.Fatal(err)
		}
		if w := list(t, db)[0]; w.Dead || w.Time.Equal(parked.Time) {
			t.Errorf("retried: %+v", w)
		}
	})
}

// A retry is none of a message that a relay gives up, or sends, at the same time.
func TestRetryWhileARelaySettles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change string // of the relay
		want   error
		dead   int // dead letters after that
	}{
		"gives up":           {"UPDATE belay_parked SET dead = 2", relay.ErrNotWaiting, 1},
		"sends":              {"DELETE FROM belay_parked", relay.ErrNotWaiting, 0},
		"tries it meanwhile": {"UPDATE belay_parked SET attempts = attempts + 1", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, p place) {
				store(t, p.db, row("a", 0))
				r := start(t, p.db, relay.WithPause(to(publish(func(relay.Message) error { return errors.New("not now") })), time.Hour))
				testwait.Until(t, "it is parked", func() bool { return len(list(t, p.db)) == 1 })
				parked := list(t, p.db)[0]
				testdb.WantNil(t, r.Close(bg))

				somebody := p.db.Begin()
				defer somebody.Rollback()
				testdb.WantNil(t, somebody.Exec(tt.change).Error)
				one, session := p.session(t)
				retried := make(chan error, 1)
				go func() { retried <- relay.Retry(bg, one, parked) }()
				testwait.Until(t, "the retry waits for the relay", func() bool { return testdb.Waiting(t, p.db, session) == 1 })
				testdb.WantNil(t, somebody.Commit().Error)
				if err := <-retried; !errors.Is(err, tt.want) {
					t.Errorf("retried: %v, want %v", err, tt.want)
				}
				if dead, err := relay.ListDead(bg, p.db, 10); err != nil || len(dead) != tt.dead {
					t.Errorf("dead letters %+v, %v, want %d", dead, err, tt.dead)
				}
			})
		})
	}
}

// retry retries a message as it is.
func retry(db *gorm.DB, id string) error {
	w, err := relay.Find(bg, db, id)
	if err != nil {
		return err
	}
	return relay.Retry(bg, db, w)
}

// session opens a pool of one session.
func (p place) session(t *testing.T) (db *gorm.DB, id int64) {
	t.Helper()
	db, err := openKind(p.kind, p.dsn, "")
	testdb.WantNil(t, err)
	pool, err := db.DB()
	testdb.WantNil(t, err)
	t.Cleanup(func() { pool.Close() })
	pool.SetMaxOpenConns(1)
	which := map[string]string{"mysql": "SELECT CONNECTION_ID()", "postgres": "SELECT pg_backend_pid()"}[p.kind]
	testdb.WantNil(t, db.Raw(which).Scan(&id).Error)
	return db, id
}

func list(t *testing.T, db *gorm.DB) []relay.Waiting {
	t.Helper()
	all, err := relay.List(bg, db, 10)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
