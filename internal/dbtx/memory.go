package dbtx

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// A Memory is what the attempts of one operation saw first of the rows that its key
// protects, while it had the lock. If such a row has changed later, another writer wrote
// it. The zero value is ready. A Memory is safe for concurrent use, and must not be used
// for another operation.
type Memory struct {
	mu     sync.Mutex
	server string
	rows   map[string]reading
}

// of forgets all if the memory is of another server, as that may be behind.
func (m *Memory) of(server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != server {
		m.server, m.rows = server, nil
	}
}

// see notes what was read of a row, unless something was noted before, and
// returns what was noted first.
func (m *Memory) see(r *protectedRow, now reading) (first reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := r.identity()
	if first, ok := m.rows[name]; ok {
		return first
	}
	if m.rows == nil {
		m.rows = make(map[string]reading)
	}
	m.rows[name] = now
	return now
}

// recall returns what was noted of a row.
func (m *Memory) recall(r *protectedRow) (first reading, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, ok = m.rows[r.identity()]
	return first, ok
}

// identity names a row within one process.
func (r *protectedRow) identity() string {
	if r.id != "" {
		return r.id
	}
	var b strings.Builder
	b.WriteString(strings.ToLower(r.table))
	for i, f := range r.fields {
		v := sqlvalue.Indirect(r.values[i])
		if at, ok := v.(time.Time); ok {
			v = at.UTC().Format(time.RFC3339Nano)
		}
		fmt.Fprintf(&b, "\x00%s=%v", f.DBName, v)
	}
	r.id = b.String()
	return r.id
}
