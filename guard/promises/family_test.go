package promises_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// TestFamily: an operation on a server that hides what it is gets the outcome that Config.Family
// leaves proven: the row with its old version proves a rollback on a known server alone, a stamp
// also on one that only resembles it, and nothing behind a proxy of shards. A nil that it takes away
// is ErrUnknown, and no outcome is added.
func TestFamily(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]struct {
		dsn    func(testing.TB) string
		open   func(testing.TB, string, ...gorm.Option) *gorm.DB
		family guard.Family
	}{
		"mysql":    {teststack.MySQL, testdb.OpenMySQL, "tidb"},
		"postgres": {teststack.Postgres, testdb.OpenPostgres, "cockroachdb"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.dsn(t)
			direct := server.open(t, dsn)
			wantNil(t, direct.AutoMigrate(&Ware{}))
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := server.open(t, k.Through(t, dsn))
			id := int64(0)
			for family, unknown := range map[guard.Family]map[bool]bool{ // by whether the COMMIT was executed
				"":            {false: false, true: false},
				server.family: {false: true, true: false},
				"Sharded":     {false: true, true: true},
			} {
				for executed, unknown := range unknown {
					id++
					wantNil(t, direct.Create(&Ware{ID: id, Left: stocked}).Error)
					g := newGuardOf(t, db, family)
					err := loseCommit(&guardtest.Guard{Guard: g}, k, "ware", guard.Update(&Ware{ID: id}, takeWare).Run, executed)
					if errors.Is(err, guard.ErrUnknown) != unknown || !unknown && (err == nil) != executed {
						t.Errorf("family %q, executed %v: %v", family, executed, err)
					}
				}
			}
		})
	}
}

// newGuardOf returns a Guard with a Config.Family, under locks in memory.
func newGuardOf(t *testing.T, db *gorm.DB, family guard.Family) *guard.Guard {
	locker, err := lock.New(memlock.New(), lock.Config{})
	wantNil(t, err)
	g, err := guard.New(db, locker, guard.Config{Service: "shop", Family: family, Publisher: new(guardtest.Recorder)})
	wantNil(t, err)
	t.Cleanup(func() {
		if err := errors.Join(g.Close(bg), locker.Close(bg)); err != nil {
			t.Error(err)
		}
	})
	return g
}

// TestFamilyOfAnotherName: New takes only the name of a server that resembles the database, and lists
// them. A known database cannot be named: Family takes proofs away.
func TestFamilyOfAnotherName(t *testing.T) {
	locker, err := lock.New(memlock.New(), lock.Config{})
	wantNil(t, err)
	defer func() { wantNil(t, locker.Close(bg)) }()
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "shop.db"))
	for _, family := range []guard.Family{"SQLite", "TiDB", "no server"} {
		_, err := guard.New(db, locker, guard.Config{Service: "shop", Family: family})
		if err == nil || !strings.HasPrefix(err.Error(), "guard: Config.Family: ") {
			t.Errorf("%s: %v", family, err)
		}
	}
}
