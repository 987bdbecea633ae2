package outbox

import (
	"strings"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/teststack"
)

func TestNumberedParameters(t *testing.T) {
	got := dialects["postgres"].sql("UPDATE belay_outbox SET retry_at = {now} + ? WHERE id IN (" + list("?", 2) + ")")
	want := "UPDATE belay_outbox SET retry_at = CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) + $1 WHERE id IN ($2, $3)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

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
	table, err := openTable(db)
	if err != nil {
		t.Fatal(err)
	}
	defer table.pool.Close()
	table.lock = "FOR UPDATE SKIP UNHEARDOF"
	if err := table.insert(t.Context(), &entry{body: []byte("{}")}); err != nil {
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
