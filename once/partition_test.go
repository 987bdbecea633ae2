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
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// partitioned are the statements that partition the tables as docs/setup.md says.
var partitioned = map[string][]string{
	"mysql": {
		"ALTER TABLE belay_once PARTITION BY KEY (request) PARTITIONS 16",
		"ALTER TABLE belay_answer PARTITION BY KEY (request) PARTITIONS 16",
	},
	"postgres": {`
DO $$ BEGIN
  FOR i IN 0..15 LOOP
    EXECUTE format('CREATE TABLE belay_once_%s PARTITION OF belay_once FOR VALUES WITH (MODULUS 16, REMAINDER %s)', i, i);
    EXECUTE format('CREATE TABLE belay_answer_%s PARTITION OF belay_answer FOR VALUES WITH (MODULUS 16, REMAINDER %s)', i, i);
  END LOOP;
END $$`},
}

// TestPartitionedByRequest: tables that are partitioned by their key keep requests apart,
// and the Purger deletes the old ones.
func TestPartitionedByRequest(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *gorm.DB{
		"mysql": func(t *testing.T) *gorm.DB {
			db := testdb.OpenMySQL(t, teststack.MySQL(t))
			testdb.WantNil(t, once.Migrate(bg, db))
			return db
		},
		"postgres": func(t *testing.T) *gorm.DB {
			db := testdb.OpenPostgres(t, teststack.Postgres(t))
			testdb.WantNil(t, db.Exec(strings.ReplaceAll(once.PostgresSchema, "()\n);", "()\n) PARTITION BY HASH (request);")).Error)
			return db
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			for _, statement := range partitioned[name] {
				testdb.WantNil(t, db.Exec(statement).Error)
			}
			testdb.WantNil(t, once.Check(bg, db))
			g := guardtest.New(t, db)
			ran := 0
			for i := range 2 {
				r := once.Request{Operation: "charge", Scope: once.Anyone, ID: "1"}
				answer, err := guard.Once(bg, g.Guard, r, func(context.Context, *gorm.DB) (int, error) { ran++; return ran, nil })
				if err != nil || answer.Value != 1 || answer.Replayed != (i == 1) {
					t.Errorf("call %d: answer %+v, error %v", i+1, answer, err)
				}
			}
			old := map[string]string{"mysql": "TIMESTAMPADD(HOUR, -100, CURRENT_TIMESTAMP(6))", "postgres": "clock_timestamp() - interval '100 hours'"}[name]
			testdb.WantNil(t, errors.Join(db.Exec("UPDATE belay_once SET created_at = "+old).Error, db.Exec("UPDATE belay_answer SET created_at = "+old).Error))
			p, err := once.NewPurger(db, once.PurgerConfig{Every: time.Second})
			testdb.WantNil(t, err)
			defer func() { testdb.WantNil(t, p.Close(bg)) }()
			testwait.Until(t, "the request is purged", func() bool {
				var n int64
				err := db.Raw("SELECT (SELECT COUNT(*) FROM belay_once) + (SELECT COUNT(*) FROM belay_answer)").Scan(&n).Error
				return err == nil && n == 0
			})
		})
	}
}
