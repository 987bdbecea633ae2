package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// A server that does not know SKIP LOCKED calls it a syntax error; the relay
// does without it from then on.
func TestServerWithoutSkipLocked(t *testing.T) {
	db, err := gorm.Open(mysql.Open(teststack.MySQL(t)), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	table, err := openTable(db)
	if err != nil {
		t.Fatal(err)
	}
	*table.locking = "FOR UPDATE SKIP UNHEARDOF"
	if err := table.insert(t.Context(), row{body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	c := claim{limit: 10, lease: time.Minute}
	if _, err := table.lease(t.Context(), c); err == nil || !strings.Contains(err.Error(), "1064") {
		t.Fatalf("err = %v, want a syntax error", err)
	}
	rows, err := table.lease(t.Context(), c)
	if err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v; want the one row", len(rows), err)
	}
}

// With statistics as without, a server of MySQL's kind finds the rows to change
// by the primary key, and so locks them in the order of a lease.
func TestRowsAreChangedByPrimaryKey(t *testing.T) {
	testdb.Each(t, func(t *testing.T, connect func(opts ...gorm.Option) *gorm.DB) {
		db := connect()
		if db.Name() != "mysql" {
			return // it locks no rows
		}
		if err := Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		table, err := openTable(db)
		if err != nil {
			t.Fatal(err)
		}
		stored := make([]row, 300)
		for n := range stored {
			stored[n] = row{eventID: fmt.Sprintf("0199a1b2-0000-7000-8000-%012d", n), body: []byte("{}")}
		}
		if err := table.insert(t.Context(), stored...); err != nil {
			t.Fatal(err)
		}
		if err := db.Exec("ANALYZE TABLE belay_outbox").Error; err != nil {
			t.Fatal(err)
		}
		var some []row
		err = table.db.Query(t.Context(), "SELECT id, event_id, body, attempts FROM belay_outbox ORDER BY id LIMIT 5", nil, appendTo(&some))
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range [][]row{some[:1], some} {
			condition, args := these(rows)
			for _, change := range []string{"DELETE FROM belay_outbox", "UPDATE belay_outbox SET leased_until = 0"} {
				var plan struct{ Key string }
				if err := db.Raw("EXPLAIN FORMAT=TRADITIONAL "+change+" WHERE "+condition, args...).Scan(&plan).Error; err != nil {
					t.Fatal(err)
				}
				if plan.Key != "PRIMARY" {
					t.Errorf("%s: %d rows are found by key %q, want PRIMARY", change, len(rows), plan.Key)
				}
			}
		}
	})
}
