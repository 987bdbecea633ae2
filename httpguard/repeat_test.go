package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// on has the site use another database.
func (s *site) on(db *gorm.DB) {
	s.t.Helper()
	testdb.WantNil(s.t, db.AutoMigrate(&Account{}))
	testdb.WantNil(s.t, once.Migrate(bg, db))
	testdb.WantNil(s.t, db.Create(&Account{ID: 7, Cents: 1000}).Error)
	s.db, s.guard = db, guardtest.New(s.t, db)
	s.cfg.Docs = "https://example.com/errors"
}

// wantFinal wants an answer that asks for no other try.
func wantFinal(t *testing.T, server *httptest.Server, status int, problem string) {
	t.Helper()
	got := post(t, server, "/pay/1", "", "Idempotency-Key", "a")
	got.want(t, status, problem)
	if again := got.header.Get("Retry-After"); again != "" {
		t.Errorf("%d has Retry-After %s", status, again)
	}
}

// TestRequestInPart: no repeat of a request that a procedure has let take effect in part is asked
// for. It would find nothing out, until the request is purged, and then run beside that part.
func TestRequestInPart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.on(testdb.OpenMySQL(t, teststack.MySQL(t)))
	testdb.WantNil(t, s.db.Exec("CREATE PROCEDURE ends() BEGIN COMMIT; END").Error)
	locks := s.guard
	for _, g := range []*guard.Guard{locks.Guard, locks.Peer(t, s.db)} {
		s.guard = &guardtest.Guard{Guard: g}
		key := ""
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			request, _ := guard.Request(r.Context())
			key = request.Key()
			s.charge(w, r)
			_ = guard.Tx(r.Context()).Exec("CALL ends()").Error
		})
		wantFinal(t, server, http.StatusInternalServerError, "internal")
		locks.Forget(key) // it is left to its ttl
	}
	s.wantRan(1)
	s.wantCents(999)
}

// TestRowThatIsThere: a row that the database refuses at the COMMIT is a conflict, as one that a key
// names is, and no reason to try again.
func TestRowThatIsThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.on(testdb.OpenPostgres(t, teststack.Postgres(t)))
	testdb.WantNil(t, s.db.Exec("CREATE TABLE bills (no TEXT UNIQUE DEFERRABLE INITIALLY DEFERRED)").Error)
	testdb.WantNil(t, s.db.Exec("INSERT INTO bills VALUES ('1')").Error)
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		testdb.WantNil(t, guard.Tx(r.Context()).Exec("INSERT INTO bills VALUES ('1')").Error)
		s.charge(w, r)
	})
	wantFinal(t, server, http.StatusConflict, "exists")
	s.wantCents(1000)
}

// TestRowThatIsStale: a row that another writer has changed may be read again by a repeat, which is
// asked for.
func TestRowThatIsStale(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	testdb.WantNil(t, s.db.Create(&Account{ID: 8}).Error)
	server := s.serve(func(_ http.ResponseWriter, r *http.Request) {
		_ = guard.Tx(r.Context()).Delete(&[]Account{{ID: 7, Version: 1}, {ID: 8, Version: 2}}).Error
	})
	got := post(t, server, "/pay/1", "", "Idempotency-Key", "a")
	got.want(t, http.StatusServiceUnavailable, "")
	if got.header.Get("Retry-After") == "" {
		t.Error("no repeat is asked for")
	}
	s.wantCents(1000)
}
