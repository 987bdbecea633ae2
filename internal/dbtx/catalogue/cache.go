package catalogue

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// maxAge is how old an answer of the database may be when a transaction begins: a table may
// have been altered since.
const maxAge = time.Minute

// A Cache remembers the descriptions of a database's tables. The zero value is ready. It
// is safe for concurrent use.
type Cache struct {
	indexes sync.Map // table name → answer[[]Index]
	columns sync.Map // table name → answer[map[string]Column]
	facts   sync.Map // table name → answer[Facts]

	altered atomic.Pointer[time.Time] // when Forget was called last; nil if never
}

// Forget makes later transactions read all tables again, because one has been altered.
// Running transactions keep their descriptions: PostgreSQL may read nothing for them any
// more.
func (c *Cache) Forget() {
	now := time.Now()
	c.altered.Store(&now)
}

// An answer is a description of a table, and when it was read.
type answer[T any] struct {
	found T
	at    time.Time
}

// Tables reads the descriptions of tables, each once in a minute. A description that it
// has used remains valid while Begun is the same, even if it is forgotten: PostgreSQL
// may read nothing later in the transaction.
type Tables struct {
	Library
	Begun time.Time // when the transaction began
}

// A Library is where descriptions of tables are.
type Library interface {
	Known() *Cache
	// Open returns the database for one read, with its context.
	Open() (ctx context.Context, in Source, done context.CancelFunc)
}

// Indexes returns the unique indexes of a table, and remembers them unless there are
// none: the table may not have been made yet.
func (t Tables) Indexes(table string) ([]Index, error) {
	return remembered(t, &t.Known().indexes, table, Source.Indexes, func(all []Index) bool { return len(all) == 0 })
}

// Column returns a column of a table, and remembers all of them.
func (t Tables) Column(table, name string) (Column, error) {
	columns, err := t.columns(table)
	return columns[strings.ToLower(name)], err
}

// Exists reports whether there is a table.
func (t Tables) Exists(table string) (bool, error) {
	columns, err := t.columns(table)
	return len(columns) > 0, err
}

func (t Tables) columns(table string) (map[string]Column, error) {
	return remembered(t, &t.Known().columns, table, Source.Columns, func(all map[string]Column) bool { return len(all) == 0 })
}

// Facts returns the facts of a table, and remembers them. If they cannot be read, it
// returns those that prove least.
func (t Tables) Facts(table string) Facts {
	known, err := remembered(t, &t.Known().facts, table, Source.Facts, func(Facts) bool { return false })
	if err == nil {
		return known
	}
	known = Facts{Transactional: true, Triggers: true, Alters: true, Indirect: true, Cascades: true, Rewritten: anyColumn}
	if dialect.IsMissing(err) { // it knows no such catalogue
		t.Known().facts.Store(table, answer[Facts]{known, time.Now()})
	}
	return known
}

// isCurrent reports whether the transaction may use an answer of that time.
func (t Tables) isCurrent(at time.Time) bool {
	if t.Begun.Sub(at) >= maxAge {
		return false
	}
	altered := t.Known().altered.Load()
	return altered == nil || at.After(*altered) || !t.Begun.After(*altered)
}

// remembered returns a table's remembered description, or reads it if that is too old. It
// remembers no empty answer.
func remembered[T any](t Tables, known *sync.Map, table string, read func(Source, context.Context, string) (T, error), empty func(T) bool) (T, error) {
	if v, ok := known.Load(table); ok {
		if a := v.(answer[T]); t.isCurrent(a.at) {
			return a.found, nil
		}
	}
	at := time.Now() // before the table is looked at
	ctx, source, done := t.Open()
	defer done()
	found, err := read(source, ctx, table)
	switch {
	case err != nil:
	case empty(found):
		known.Delete(table)
	default:
		known.Store(table, answer[T]{found, at})
	}
	return found, err
}
