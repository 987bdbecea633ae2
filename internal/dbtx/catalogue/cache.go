package catalogue

import (
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// A Cache remembers what is known of the tables of a database. The zero value is ready.
type Cache struct {
	indexes sync.Map // table name → []Index
	columns sync.Map // table name → map[string]Column
	facts   sync.Map // table name → Facts
}

// Tables reads what the database knows of its tables, of each once.
type Tables struct {
	Known *Cache
	Open  func() (db *gorm.DB, done func()) // returns a session for one read
}

// Indexes returns the unique indexes of a table, and remembers them unless there are
// none: the table may not have been made yet.
func (t Tables) Indexes(table string) ([]Index, error) {
	indexes, err := remembered(t, &t.Known.indexes, table, Indexes)
	if len(indexes) == 0 {
		t.Known.indexes.Delete(table)
	}
	return indexes, err
}

// Column returns a column of a table, and remembers all of them.
func (t Tables) Column(table, name string) (Column, error) {
	columns, err := remembered(t, &t.Known.columns, table, Columns)
	return columns[strings.ToLower(name)], err
}

// Facts returns the facts of a table, and remembers them. If they can't be read, it
// returns those from which least follows.
func (t Tables) Facts(table string) Facts {
	known, err := remembered(t, &t.Known.facts, table, FactsOf)
	if err == nil {
		return known
	}
	known = Facts{Transactional: true, Triggers: true, Alters: true, Cascades: true}
	if dialect.IsMissing(err) { // it knows no such catalogue
		t.Known.facts.Store(table, known)
	}
	return known
}

func remembered[T any](t Tables, known *sync.Map, table string, read func(*gorm.DB, string) (T, error)) (T, error) {
	if found, ok := known.Load(table); ok {
		return found.(T), nil
	}
	db, done := t.Open()
	defer done()
	found, err := read(db, table)
	if err == nil {
		known.Store(table, found)
	}
	return found, err
}
