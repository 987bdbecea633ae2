package promises_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// TestLateHolderWritesTheSame: the COMMIT of the rightful holder does not arrive, and
// one who has lost the lock writes the very same after it. What is in the row then
// proves nothing: the holder must not be told that it was its own.
func TestLateHolderWritesTheSame(t *testing.T) {
	type operation func(ctx context.Context, tx *gorm.DB, rest func()) error
	for name, tt := range map[string]struct {
		op      operation
		unknown bool // where the database is not asked
	}{
		"insert": {func(ctx context.Context, tx *gorm.DB, rest func()) error {
			rest()
			return guard.Insert(&Label{Code: "a", Amount: 5}).Run(ctx, tx)
		}, true},
		"update": {func(ctx context.Context, tx *gorm.DB, rest func()) error {
			return guard.Update(&Stock{ID: 1}, func(s *Stock) error { rest(); return take(s) }).Run(ctx, tx)
		}, true},
		"stamped update": {func(ctx context.Context, tx *gorm.DB, rest func()) error {
			return guard.Update(&Ware{ID: 1}, func(w *Ware) error { rest(); return takeWare(w) }).Run(ctx, tx)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for server, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "mysql9": teststack.MySQL9, "postgres": teststack.Postgres} {
				t.Run(server, func(t *testing.T) {
					e, k := linkedTo(t, dsn(t))
					late, rightful := e.race(k, tt.op)
					wantNil(t, late)
					switch unknown := tt.unknown && server != "postgres"; {
					case rightful == nil:
						t.Error("two callers are told that they have written, and one has")
					case errors.Is(rightful, guard.ErrUnknown) != unknown:
						t.Errorf("the rightful holder got %v", rightful)
					}
					var w Ware
					wantNil(t, e.db.Take(&w, 1).Error)
					if effects := 9 - e.stock(1).Left + 9 - w.Left + int(e.count(&Label{})); effects != 1 {
						t.Errorf("%d effects in the database, want 1", effects)
					}
				})
			}
		})
	}
}

// linkedTo is linked for any server.
func linkedTo(t *testing.T, dsn string) (*env, *testdb.Link) {
	t.Helper()
	open := testdb.OpenMySQL
	if testdb.IsPostgres(dsn) {
		open = testdb.OpenPostgres
	}
	direct := open(t, dsn)
	wantNil(t, direct.AutoMigrate(&Order{}, &Stock{}, &Ware{}, &Label{}))
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	return &env{t: t, db: direct, Guard: guardtest.New(t, open(t, k.Through(t, dsn))), open: func(opts ...gorm.Option) *gorm.DB {
		return open(t, k.Through(t, dsn), opts...)
	}}, k
}

// race has a holder begin, rest and lose the lock. The next one, whose COMMIT will not
// arrive, writes; then the late one goes on. It returns what both were told.
func (e *env) race(k *testdb.Link, op func(ctx context.Context, tx *gorm.DB, rest func()) error) (late, rightful error) {
	const key = "k"
	e.create(&Stock{ID: 1, Left: 9}, &Ware{ID: 1, Left: 9})
	peer := e.Peer(e.t, e.db) // another instance, not behind the link
	var session int64
	begun, goOn := make(chan struct{}), make(chan struct{})
	lateResult, result := make(chan error, 1), make(chan error, 1)
	go func() {
		lateResult <- peer.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			question := "SELECT CONNECTION_ID()"
			if tx.Name() == "postgres" {
				question = "SELECT pg_backend_pid()"
			}
			if err := tx.Raw(question).Scan(&session).Error; err != nil {
				return err
			}
			return op(ctx, tx, func() { close(begun); <-goOn })
		})
	}()
	<-begun
	e.Forget(key)

	reached, pass := k.Hold()
	defer pass()
	k.Before.Store(true)
	go func() {
		result <- e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error { return op(ctx, tx, func() {}) })
	}()
	<-reached
	close(goOn)
	e.untilWaits(session)
	pass() // the connection breaks, the server rolls it back, and the late write goes on
	return <-lateResult, <-result
}

// untilWaits waits until a session waits for a lock.
func (e *env) untilWaits(session int64) {
	e.t.Helper()
	testwait.Until(e.t, "the session waits for a lock", func() bool { return testdb.Waiting(e.t, e.db, session) == 1 })
}
