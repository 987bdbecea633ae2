package catalogue

import (
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// A Cache remembers what is known of tables, each of which it reads once. The zero value
// is ready.
type Cache struct {
	indexes sync.Map // table name → []Index
	columns sync.Map // table name → map[string]Column
	facts   sync.Map // table name → Facts
}

// An Open returns a session for one read.
type Open func() (db *gorm.DB, done func())

// Indexes returns the unique indexes of a table, and remembers them unless there are
// none: the table may not have been made yet.
func (c *Cache) Indexes(open Open, table string) ([]Index, error) {
	indexes, err := remembered(&c.indexes, open, table, Indexes)
	if len(indexes) == 0 {
		c.indexes.Delete(table)
	}
	return indexes, err
}

// Column returns a column of a table, and remembers all of them.
func (c *Cache) Column(open Open, table, name string) (Column, error) {
	columns, err := remembered(&c.columns, open, table, Columns)
	return columns[strings.ToLower(name)], err
}

// Facts returns the facts of a table, and remembers them. If they can't be read, it
// returns those from which least follows.
func (c *Cache) Facts(open Open, table string) Facts {
	known, err := remembered(&c.facts, open, table, FactsOf)
	if err == nil {
		return known
	}
	known = Facts{Transactional: true, Triggers: true, Alters: true, Cascades: true}
	if dialect.FromServer(err) && !dialect.IsAborted(err) { // it knows no such catalogue
		c.facts.Store(table, known)
	}
	return known
}

func remembered[T any](known *sync.Map, open Open, table string, read func(*gorm.DB, string) (T, error)) (T, error) {
	if found, ok := known.Load(table); ok {
		return found.(T), nil
	}
	db, done := open()
	defer done()
	found, err := read(db, table)
	if err == nil {
		known.Store(table, found)
	}
	return found, err
}
