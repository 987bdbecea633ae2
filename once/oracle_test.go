package once_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/once"
)

// TestOracleMode: MariaDB's mode ORACLE has more words than others. The tables are made and
// used in it.
func TestOracleMode(t *testing.T) {
	t.Parallel()
	dsn := teststack.MySQL(t)
	var version string
	testdb.WantNil(t, testdb.OpenMySQL(t, dsn).Raw("SELECT VERSION()").Scan(&version).Error)
	if !strings.Contains(version, "MariaDB") {
		t.Skip("MySQL has no mode ORACLE")
	}
	db := testdb.OpenMySQL(t, dsn+"&sql_mode=%27ORACLE,STRICT_TRANS_TABLES%27")
	testdb.WantNil(t, errors.Join(once.Migrate(bg, db), once.Check(bg, db), outbox.Migrate(bg, db)))
	g := guardtest.New(t, db)
	r := once.Request{Operation: "charge", Scope: once.Anyone, ID: "1"}
	for i := range 2 {
		answer, err := guard.Once(bg, g.Guard, r, func(context.Context, *gorm.DB) (string, error) { return "paid", nil })
		if err != nil || answer.Value != "paid" || answer.Replayed != (i == 1) {
			t.Errorf("call %d: answer %+v, error %v", i+1, answer, err)
		}
	}
	p, err := once.NewPurger(db, once.PurgerConfig{Keep: time.Minute, Every: time.Second})
	testdb.WantNil(t, err)
	testdb.WantNil(t, p.Close(bg))
}
