package dbtx

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestSessionOfAWeakRoleIsEnded: Belay reads no numbers of transactions under a role that may not
// identify the server. A COMMIT that is on its way is rolled back before a missing row proves anything.
func TestSessionOfAWeakRoleIsEnded(t *testing.T) {
	type Ticket struct {
		ID uint
		No string `gorm:"size:16;uniqueIndex"`
	}
	dsn := teststack.Postgres(t)
	direct := testdb.OpenPostgres(t, dsn)
	if err := errors.Join(Install(direct), direct.AutoMigrate(&Ticket{})); err != nil {
		t.Fatal(err)
	}
	weak, k := weaken(t, direct, dsn)
	tx, err := Begin(context.Background(), weak, Options{EndTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if s := tx.conn.Session; s.Numbers || s.Run != "" || s.Proven() != dialect.PostgreSQL {
		t.Fatalf("the session is %+v", s)
	}
	if err := errors.Join(tx.Protect(&Ticket{No: "a"}), tx.DB().Create(&Ticket{No: "a"}).Error); err != nil {
		t.Fatal(err)
	}
	_, pass := k.Hold()
	defer pass()
	if err := tx.Commit(); !errors.Is(err, ErrCommitUnknown) {
		t.Fatalf("error is %v, want %v", err, ErrCommitUnknown)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if o, err := tx.Resolve(ctx); o != NotCommitted || err != nil {
		t.Errorf("resolved as %v, %v", o, err)
	}
	var living int
	if err := direct.Raw("SELECT count(*) FROM pg_stat_activity WHERE pid = ?", tx.conn.Session.ID).Scan(&living).Error; err != nil || living != 0 {
		t.Errorf("the session may still commit: %d, %v", living, err)
	}
}

// weaken revokes the right to identify the server, and opens a pool, through a link, as a role that
// has rights on the tables alone.
func weaken(t *testing.T, direct *gorm.DB, dsn string) (*gorm.DB, *testdb.Link) {
	t.Helper()
	role, password := direct.Migrator().CurrentDatabase()+"_weak", rand.Text()
	for _, query := range []string{
		"REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC",
		"CREATE ROLE " + role + " LOGIN PASSWORD '" + password + "'",
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO " + role,
		"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO " + role,
	} {
		if err := direct.Exec(query).Error; err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := errors.Join(direct.Exec("GRANT EXECUTE ON FUNCTION pg_control_system TO PUBLIC").Error, direct.Exec("DROP OWNED BY "+role).Error, direct.Exec("DROP ROLE "+role).Error); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, password)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenPostgres(t, k.Through(t, u.String()))
	if err := Install(db); err != nil {
		t.Fatal(err)
	}
	return db, k
}
