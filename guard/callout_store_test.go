package guard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// TestResultAwaitsTheDatabase: the database takes no connections when the provider has answered. The answer
// is stored when it takes some, and nobody calls again.
func TestResultAwaitsTheDatabase(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, k := payingOver(t, dsn(t))
			db := e.open()
			pool, err := db.DB()
			wantNil(t, err)
			pool.SetMaxIdleConns(0) // each statement connects
			g := e.over(db, time.Minute)
			e.meantime = func(context.Context) { k.Away.Store(true) }
			done := make(chan error, 1)
			go func() {
				_, err := e.runBy(g, "a", 5)
				done <- err
			}()
			testwait.Until(t, "it tries again and again", func() bool { return k.Resets.Load() > 30 || len(done) > 0 })
			k.Away.Store(false)
			if err := <-done; err != nil && !errors.Is(err, guard.ErrPending) {
				t.Fatal(err)
			}
			e.forget()
			e.settles(1)
		})
	}
}
