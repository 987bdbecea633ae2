package catalogue_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestFactsAreReadAgain: that a catalogue could not be read once, as in a failover, says
// nothing of the table.
func TestFactsAreReadAgain(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.Postgres(t)+"&lock_timeout=50")
	testdb.WantNil(t, db.Exec("CREATE TABLE plain (id INT PRIMARY KEY)").Error)
	known := new(catalogue.Cache)
	tables := catalogue.Tables{Library: library{known, open(t, db)}}
	testdb.WantNil(t, db.Transaction(func(tx *gorm.DB) error {
		err := tx.Exec("LOCK TABLE pg_constraint IN ACCESS EXCLUSIVE MODE").Error
		if f := tables.Facts("plain"); !f.Triggers {
			t.Errorf("facts that could not be read are %+v", f)
		}
		return err
	}))
	if f := tables.Facts("plain"); f != (catalogue.Facts{Transactional: true}) {
		t.Errorf("facts are %+v", f)
	}
}

// TestIndexesAreReadAgain: what is known of a table is used by the transactions that begin
// within a minute, for as long as they take. What is forgotten is read again by those that
// begin later: one that has begun may not be able to read.
func TestIndexesAreReadAgain(t *testing.T) {
	testdb.EachWithPostgres(t, func(t *testing.T, opens func(...gorm.Option) *gorm.DB) {
		db := opens()
		testdb.WantNil(t, db.Exec("CREATE TABLE plain (id INT PRIMARY KEY, no INT NOT NULL)").Error)
		testdb.WantNil(t, db.Exec("CREATE UNIQUE INDEX plain_no ON plain (no)").Error)
		known := new(catalogue.Cache)
		at := func(begun time.Time) int {
			indexes, err := catalogue.Tables{Library: library{known, open(t, db)}, Begun: begun}.Indexes("plain")
			testdb.WantNil(t, err)
			return len(indexes)
		}
		now := time.Now()
		if n := at(now); n != 2 {
			t.Fatalf("%d indexes, want 2", n)
		}
		testdb.WantNil(t, db.Migrator().DropIndex("plain", "plain_no"))
		if n := at(now.Add(50 * time.Second)); n != 2 {
			t.Errorf("%d indexes within a minute, want the 2 that are known", n)
		}
		if n := at(now.Add(2 * time.Minute)); n != 1 {
			t.Errorf("%d indexes after it, want 1", n)
		}
		testdb.WantNil(t, db.Exec("CREATE UNIQUE INDEX plain_no ON plain (no)").Error)
		known.Forget()
		if n := at(now); n != 1 {
			t.Errorf("%d indexes in a transaction that has begun, want the 1 that it knows", n)
		}
		if n := at(time.Now()); n != 2 {
			t.Errorf("%d indexes in one that begins later, want 2", n)
		}
	})
}

// open returns a function that opens db for a read.
func open(t *testing.T, db *gorm.DB) catalogue.Source {
	pool, err := db.DB()
	testdb.WantNil(t, err)
	return catalogue.Source{Dialect: db.Name(), Conn: pool}
}

// library is a catalogue.Library.
type library struct {
	known *catalogue.Cache
	in    catalogue.Source
}

func (l library) Known() *catalogue.Cache { return l.known }

func (l library) Open() (context.Context, catalogue.Source, context.CancelFunc) {
	return context.Background(), l.in, func() {}
}
