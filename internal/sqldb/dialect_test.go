package sqldb_test

import (
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
)

func TestRebind(t *testing.T) {
	const statement = `UPDATE t SET "body" = ? WHERE id IN (?, ?)`
	for name, want := range map[string]string{
		"mysql":    "UPDATE t SET `body` = ? WHERE id IN (?, ?)",
		"postgres": `UPDATE t SET "body" = $1 WHERE id IN ($2, $3)`,
		"sqlite":   statement,
	} {
		if got := dialect(t, name).Rebind(statement); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func dialect(t *testing.T, name string) sqldb.Dialect {
	t.Helper()
	d, ok := sqldb.Of(name)
	if !ok {
		t.Fatalf("%s is unknown", name)
	}
	return d
}

func TestOfUnknown(t *testing.T) {
	if d, ok := sqldb.Of("sqlserver"); ok {
		t.Errorf("found %+v", d)
	}
}

// TestTime: the clock and a column of a database are in units since 1970.
func TestTime(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		d := dialect(t, db.Name())
		kind := map[string]string{
			"mysql":    "TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
			"postgres": "TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()",
			"sqlite":   "TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP",
		}[d.Name]
		testdb.WantNil(t, db.Exec("CREATE TABLE a (id INT, at "+kind+")").Error)
		testdb.WantNil(t, db.Exec("INSERT INTO a (id) VALUES (1)").Error)
		times := map[string]time.Duration{
			d.Now(time.Microsecond): time.Microsecond, d.Now(time.Millisecond): time.Millisecond, d.Now(time.Second): time.Second,
			d.Epoch("at"): time.Second,
		}
		for expression, unit := range times {
			var n float64
			testdb.WantNil(t, db.Raw(fmt.Sprintf("SELECT %s FROM a", expression)).Row().Scan(&n))
			if at := time.Unix(0, int64(n*float64(unit))); time.Since(at).Abs() > time.Minute {
				t.Errorf("%s is %v", expression, at)
			}
		}
	})
}

// TestIgnore: an insert of a value that is there changes nothing.
func TestIgnore(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		d := dialect(t, db.Name())
		testdb.WantNil(t, db.Exec("CREATE TABLE a (id INT PRIMARY KEY, n INT)").Error)
		for n := range 2 {
			testdb.WantNil(t, db.Exec("INSERT INTO a (id, n) VALUES (1, ?) "+d.Ignore("id"), n).Error)
		}
		var n int
		testdb.WantNil(t, db.Raw("SELECT n FROM a").Row().Scan(&n))
		if n != 0 {
			t.Errorf("n = %d, want 0", n)
		}
	})
}
