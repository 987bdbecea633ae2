package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
)

var mysqlTexts = []string{"pseudo_thread_id", "START TRANSACTION"}

// TestDoReturnsFromASilentDatabase: the connection stays open and no answer comes.
// Either a limit of the DSN or one of the lock ends the wait of a caller who has none.
func TestDoReturnsFromASilentDatabase(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]struct {
		dsn     func(testing.TB) string
		open    func(testing.TB, string, ...gorm.Option) *gorm.DB
		params  string
		maxHold time.Duration
		texts   []string // of a session's first statement, and of BEGIN
	}{
		"mysql, readTimeout": {teststack.MySQL, testdb.OpenMySQL, "&timeout=1s&readTimeout=1s&writeTimeout=1s", 0, mysqlTexts},
		"mysql, MaxHold":     {teststack.MySQL, testdb.OpenMySQL, "", time.Second, mysqlTexts},
		"postgres, MaxHold":  {teststack.Postgres, testdb.OpenPostgres, "", time.Second, []string{"pg_backend_pid", "BEGIN"}},
	} {
		for _, text := range append([]string{"SELECT * FROM", "UPDATE", "COMMIT"}, server.texts...) {
			t.Run(name+"/"+text, func(t *testing.T) {
				t.Parallel()
				dsn := server.dsn(t)
				direct := server.open(t, dsn)
				wantNil(t, direct.AutoMigrate(&Stock{}))
				e := &env{t: t, db: direct, Guard: guardtest.New(t, direct)}
				e.create(&Stock{ID: 1, Left: 9})
				k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
				through := server.open(t, k.Through(t, dsn)+server.params)
				g := limited(t, e, through, server.maxHold)
				k.Swallow(text)
				err := g.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
					s := Stock{ID: 1}
					if err := tx.Take(&s).Error; err != nil {
						return err
					}
					return tx.Transaction(func(tx *gorm.DB) error {
						return tx.Model(&s).Update("left", s.Left-1).Error
					})
				}, guard.Protects(&Stock{ID: 1}))
				switch left := e.stock(1).Left; {
				case text == "COMMIT":
					if left != 8 || err != nil && !errors.Is(err, guard.ErrUnknown) {
						t.Errorf("error is %v, %d left, want what was committed", err, left)
					}
				case err == nil || left != 9:
					t.Errorf("error is %v, %d left, want a rollback", err, left)
				}
				wantNil(t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error { return nil }, guard.Wait(time.Minute)))
			})
		}
	}
}

// limited returns another instance of e's service, which is closed when the test ends.
func limited(t *testing.T, e *env, db *gorm.DB, maxHold time.Duration) *guard.Guard {
	t.Helper()
	locker, err := lock.New(e.Engine(), lock.Config{TTL: 4 * time.Second, MaxHold: maxHold})
	wantNil(t, err)
	g, err := guard.New(db, locker, guard.Config{Service: "test", Publisher: &e.Events, EndTimeout: 2 * time.Second})
	wantNil(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		if err := errors.Join(g.Close(ctx), locker.Close(ctx)); err != nil {
			t.Errorf("close guard: %v", err)
		}
	})
	return g
}
