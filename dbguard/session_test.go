package dbguard

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestAnotherServer: the pool leads to another server by now, on which the number
// of the session is anybody's.
func TestAnotherServer(t *testing.T) {
	type Ticket struct {
		ID uint
		No string `gorm:"size:16;uniqueIndex"`
	}
	for name, server := range map[string]struct {
		dsn    func(testing.TB) string
		open   func(testing.TB, string, ...gorm.Option) *gorm.DB
		living string // SQL: whether the session is there
	}{
		"mysql":    {teststack.MySQL, testdb.OpenMySQL, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?"},
		"postgres": {teststack.Postgres, testdb.OpenPostgres, "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = ?"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.dsn(t)
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := server.open(t, k.Through(t, dsn))
			if err := errors.Join(Install(db), db.AutoMigrate(&Ticket{})); err != nil {
				t.Fatal(err)
			}
			tx, err := Begin(context.Background(), db, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(tx.Protect(&Ticket{No: "a"}), tx.DB().Create(&Ticket{No: "a"}).Error); err != nil {
				t.Fatal(err)
			}
			k.Stall.Store(true)
			if err := tx.Commit(); !errors.Is(err, ErrCommitUnknown) {
				t.Fatalf("error is %v, want %v", err, ErrCommitUnknown)
			}
			tx.conn.session.server = "elsewhere:1"
			o, err := tx.Resolve(context.Background())
			if o != Unresolved || err == nil || !strings.Contains(err.Error(), "elsewhere:1") {
				t.Errorf("resolved as %v, %v", o, err)
			}
			var living int
			if err := db.Raw(server.living, tx.conn.session.id).Scan(&living).Error; err != nil || living != 1 {
				t.Errorf("%d sessions of that number, %v, want it alive", living, err)
			}
		})
	}
}
