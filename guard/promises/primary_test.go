package promises_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// Payment has a primary key that its table does not have.
type Payment struct {
	ID        string `gorm:"primaryKey;size:64"`
	CreatedAt time.Time
	Cents     int
	Version   dbguard.Version
}

// paymentTables are tables of Payment in which any number of rows may have one id.
var paymentTables = map[string]map[string][]string{
	"mysql": {
		"plain index": {"CREATE TABLE payments (no BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(64) NOT NULL, created_at DATETIME(6) NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1, KEY (id))"},
		"partitioned by time": {`CREATE TABLE payments (id VARCHAR(64) NOT NULL, created_at DATETIME(6) NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1, PRIMARY KEY (id, created_at))
			PARTITION BY RANGE COLUMNS(created_at) (PARTITION p0 VALUES LESS THAN ('2026-02-01'), PARTITION p1 VALUES LESS THAN (MAXVALUE))`},
		"view": {
			"CREATE TABLE receipts (no BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(64) NOT NULL, created_at DATETIME(6) NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)",
			"CREATE VIEW payments AS SELECT id, created_at, cents, version FROM receipts",
		},
	},
	"postgres": {
		"plain index": {
			"CREATE TABLE payments (no BIGSERIAL PRIMARY KEY, id VARCHAR(64) NOT NULL, created_at TIMESTAMPTZ NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)",
			"CREATE INDEX ON payments (id)",
		},
		"partitioned by time": {
			"CREATE TABLE payments (id VARCHAR(64) NOT NULL, created_at TIMESTAMPTZ NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1, PRIMARY KEY (id, created_at)) PARTITION BY RANGE (created_at)",
			"CREATE TABLE payments_1 PARTITION OF payments FOR VALUES FROM (MINVALUE) TO (MAXVALUE)",
		},
		"inherited": {
			"CREATE TABLE payments (id VARCHAR(64) PRIMARY KEY, created_at TIMESTAMPTZ NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)",
			"CREATE TABLE payments_1 () INHERITS (payments)",
		},
		"index that failed to be made": {
			"CREATE TABLE payments (no BIGSERIAL PRIMARY KEY, id VARCHAR(64) NOT NULL, created_at TIMESTAMPTZ NOT NULL, cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)",
			"CREATE UNIQUE INDEX broken ON payments (id)",
			"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'broken'::regclass",
		},
	},
	"sqlite": {
		"plain index": {
			"CREATE TABLE payments (no INTEGER PRIMARY KEY, id TEXT NOT NULL, created_at DATETIME NOT NULL, cents INT NOT NULL, version BIGINT NOT NULL DEFAULT 1)",
			"CREATE INDEX payments_id ON payments (id)",
		},
		"key of two": {"CREATE TABLE payments (id TEXT NOT NULL, created_at DATETIME NOT NULL, cents INT NOT NULL, version BIGINT NOT NULL DEFAULT 1, PRIMARY KEY (id, created_at))"},
	},
}

// eachPayments runs f on every table of Payment whose key is not the model's.
func eachPayments(t *testing.T, f func(e *env)) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		for name, ddl := range paymentTables[open().Name()] {
			t.Run(name, func(t *testing.T) {
				db := open() // which has read no index yet
				defer func() { wantNil(t, dropPayments(db)) }()
				for _, statement := range ddl {
					wantNil(t, db.Exec(statement).Error)
				}
				f(&env{Guard: guardtest.New(t, db), t: t, db: db, open: open})
			})
		}
	})
}

func dropPayments(db *gorm.DB) error {
	if db.Name() == "mysql" {
		// In this order, as MySQL 8.0 refuses to drop a table as a view.
		return errors.Join(db.Exec("DROP TABLE IF EXISTS payments, receipts").Error, db.Exec("DROP VIEW IF EXISTS payments").Error)
	}
	if db.Name() == "postgres" {
		return db.Exec("DROP TABLE payments CASCADE").Error
	}
	return db.Exec("DROP TABLE payments").Error
}

// TestKeyOfTheModelAlone: a primary key that only the model has protects no row. What
// relies on it is refused, whatever else is set, and Check finds it.
func TestKeyOfTheModelAlone(t *testing.T) {
	eachPayments(t, func(e *env) {
		if err := dbguard.Check(bg, e.db, &Payment{}); err == nil || !strings.Contains(err.Error(), "(id)") {
			e.t.Errorf("Check returns %v, want that (id) is not unique", err)
		}
		for i := range 2 {
			for name, at := range map[string]time.Time{"now": {}, "of its own": time.Date(2026, 1, 1+60*i, 0, 0, 0, 0, time.UTC)} {
				insert := guard.Insert(&Payment{ID: "1", CreatedAt: at, Cents: 5})
				if err := e.Apply(bg, "payment:1", insert); !errors.Is(err, dbguard.ErrUnprotectable) {
					e.t.Errorf("time %s: an insert returns %v, want ErrUnprotectable", name, err)
				}
				if err := e.Apply(bg, "payment:1", insert, guard.Protects(&Payment{ID: "1"})); !errors.Is(err, dbguard.ErrUnprotectable) {
					e.t.Errorf("time %s: an insert with Protects returns %v, want ErrUnprotectable", name, err)
				}
			}
		}
		if n := e.count(&Payment{}); n != 0 {
			e.t.Errorf("there are %d rows, want none", n)
		}
		pay := guard.Update(&Payment{ID: "2"}, func(p *Payment) error { p.Cents++; return nil })
		if err := e.Apply(bg, "payment:2", pay); !errors.Is(err, dbguard.ErrUnprotectable) {
			e.t.Errorf("an update returns %v, want ErrUnprotectable", err)
		}
		e.wantNoEvent()
	})
}

// TestDBOnlyAsksForTheIndex: without the lock, a key that only the model has covers nothing.
func TestDBOnlyAsksForTheIndex(t *testing.T) {
	eachPayments(t, func(e *env) {
		g, _ := e.dbOnly(guard.Config{})
		for range 2 {
			if err := g.Apply(bg, "payment:1", guard.Insert(&Payment{ID: "1", Cents: 5})); err == nil {
				e.t.Error("a row without an index was inserted without the lock")
			}
		}
		if n := e.count(&Payment{}); n != 0 {
			e.t.Errorf("there are %d rows, want none", n)
		}
	})
}

// TestDeferrableIndex: an index that is checked at the COMMIT comes too late for a verdict,
// and the error names it.
func TestDeferrableIndex(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.Postgres(t))
	wantNil(t, db.Exec(`CREATE TABLE payments (id VARCHAR(64) CONSTRAINT late PRIMARY KEY DEFERRABLE, created_at TIMESTAMPTZ NOT NULL,
		cents BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)`).Error)
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	const late = "late is deferrable"
	if err := dbguard.Check(bg, db, &Payment{}); err == nil || !strings.Contains(err.Error(), late) {
		t.Errorf("Check returns %v, want %q in it", err, late)
	}
	for name, change := range map[string]guard.Change{
		"insert": guard.Insert(&Payment{ID: "1"}),
		"update": guard.Update(&Payment{ID: "1"}, func(*Payment) error { return nil }),
	} {
		err := e.Apply(bg, "payment:1", change)
		if !errors.Is(err, dbguard.ErrUnprotectable) || !strings.Contains(err.Error(), late) {
			t.Errorf("%s: error is %v, want ErrUnprotectable with %q", name, err, late)
		}
	}
}

// Reading is one of a meter at a time, by which nothing tells a repeat from another one.
type Reading struct {
	Meter     string    `gorm:"primaryKey;size:64"`
	CreatedAt time.Time `gorm:"primaryKey"`
}

// TestTimeOfTheAttemptNamesNoRow: gorm fills in the time of each attempt, so an index on it
// refuses no repeat.
func TestTimeOfTheAttemptNamesNoRow(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Reading{}))
		for range 2 {
			wantIs(e.t, e.Apply(bg, "meter:1", guard.Insert(&Reading{Meter: "1"})), dbguard.ErrUnprotectable)
		}
		at := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		wantNil(e.t, e.Apply(bg, "meter:1", guard.Insert(&Reading{Meter: "1", CreatedAt: at})))
		wantIs(e.t, e.Apply(bg, "meter:1", guard.Insert(&Reading{Meter: "1", CreatedAt: at})), guard.ErrDuplicate)
	})
}
