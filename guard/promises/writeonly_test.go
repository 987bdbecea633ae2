package promises_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
)

// Login has a hash that gorm writes and does not read.
type Login struct {
	ID      int64
	Hash    string `gorm:"size:64;->:false;<-"`
	Left    int
	Version dbguard.Version
}

// HashedLogin has one that a hook sets.
type HashedLogin struct {
	ID      int64
	Hash    string `gorm:"size:64;->:false;<-"`
	Left    int
	Version dbguard.Version
}

func (l *HashedLogin) BeforeUpdate(*gorm.DB) error {
	if l.Left == 0 {
		l.Hash = "none"
	}
	return nil
}

func (e *env) wantHash(table, want string) {
	e.t.Helper()
	var hash string
	wantNil(e.t, e.db.Raw("SELECT hash FROM "+table).Scan(&hash).Error)
	if hash != want {
		e.t.Errorf("the hash in %s is %q, want %q", table, hash, want)
	}
}

// TestUpdateKeepsWhatIsNotRead: an Update saves a column that gorm does not read if the change,
// or a hook, has set it, and leaves it alone otherwise.
func TestUpdateKeepsWhatIsNotRead(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Login{}, &HashedLogin{}))
		e.create(&Login{ID: 1, Hash: "old", Left: 2}, &HashedLogin{ID: 1, Hash: "old", Left: 2})
		takeLogin := func(l *Login) error { l.Left--; return nil }
		takeHashed := func(l *HashedLogin) error { l.Left--; return nil }

		wantNil(e.t, e.Apply(bg, "login:1", guard.Update(&Login{ID: 1}, takeLogin)))
		e.wantHash("logins", "old")
		wantNil(e.t, e.Apply(bg, "login:1", guard.Update(&Login{ID: 1}, func(l *Login) error { l.Hash = "new"; return nil })))
		e.wantHash("logins", "new")

		wantNil(e.t, e.Apply(bg, "hashed:1", guard.Update(&HashedLogin{ID: 1}, takeHashed)))
		e.wantHash("hashed_logins", "old")
		wantNil(e.t, e.Apply(bg, "hashed:1", guard.Update(&HashedLogin{ID: 1}, takeHashed)))
		e.wantHash("hashed_logins", "none")
	})
}

// TestCombineKeepsWhatIsNotRead: nor does the change of another caller empty it, or see it.
func TestCombineKeepsWhatIsNotRead(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Login{}))
		e.create(&Login{ID: 1, Hash: "old", Left: 9})
		e.inside().NoTurnLimit()
		changes := []func(*Login) error{
			func(l *Login) error { l.Hash = "new"; return nil },
			func(l *Login) error { l.Left--; return nil },
			func(l *Login) error { l.Left--; return nil },
			func(l *Login) error { l.Left, l.Hash = l.Left-1, ""; return nil },
		}
		rows := make([]Login, len(changes))
		var begun atomic.Int64
		var all sync.WaitGroup
		wantNil(e.t, e.Do(bg, "login:1", func(context.Context, *gorm.DB) error {
			for i, change := range changes {
				rows[i].ID = 1
				all.Go(func() {
					begun.Add(1)
					if err := e.Apply(bg, "login:1", guard.Update(&rows[i], change), guard.Wait(time.Minute), guard.Combine()); err != nil {
						e.t.Error(err)
					}
				})
				testwait.Until(e.t, "the caller begins", func() bool { return begun.Load() == int64(i)+1 })
			}
			return nil
		}))
		all.Wait()
		e.wantHash("logins", "new")
		for i, row := range rows {
			if i > 0 && row.Hash != "" {
				e.t.Errorf("caller %d sees the hash %q", i, row.Hash)
			}
		}
	})
}
