package guard_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
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

// TestUpdateKeepsWhatIsNotRead: an Update saves a column that gorm does not read if the change,
// or a hook, has set it, and leaves it alone otherwise.
func TestUpdateKeepsWhatIsNotRead(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Login{}, &HashedLogin{}))
		e.create(&Login{ID: 1, Hash: "old", Left: 2}, &HashedLogin{ID: 1, Hash: "old", Left: 2})
		wants := func(table, want string) {
			e.t.Helper()
			var hash string
			wantNil(e.t, e.db.Raw("SELECT hash FROM "+table).Scan(&hash).Error)
			if hash != want {
				e.t.Errorf("the hash in %s is %q, want %q", table, hash, want)
			}
		}
		takeLogin := func(l *Login) error { l.Left--; return nil }
		takeHashed := func(l *HashedLogin) error { l.Left--; return nil }

		wantNil(e.t, e.Apply(bg, "login:1", guard.Update(&Login{ID: 1}, takeLogin)))
		wants("logins", "old")
		wantNil(e.t, e.Apply(bg, "login:1", guard.Update(&Login{ID: 1}, takeLogin), guard.Combine()))
		wants("logins", "old")
		wantNil(e.t, e.Apply(bg, "login:1", guard.Update(&Login{ID: 1}, func(l *Login) error { l.Hash = "new"; return nil })))
		wants("logins", "new")

		wantNil(e.t, e.Apply(bg, "hashed:1", guard.Update(&HashedLogin{ID: 1}, takeHashed)))
		wants("hashed_logins", "old")
		wantNil(e.t, e.Apply(bg, "hashed:1", guard.Update(&HashedLogin{ID: 1}, takeHashed)))
		wants("hashed_logins", "none")
	})
}
