package protected

import (
	"maps"
	"sync"
)

// A Memory keeps an operation's first readings of its protected rows, while it had the
// locks. If such a row has changed later, another writer wrote it. The zero value is
// ready. A Memory is safe for concurrent use, and must not be used for another
// operation.
type Memory struct {
	mu     sync.Mutex
	server string
	rows   map[string]seen
}

// seen is the first reading of a row.
type seen struct {
	key string // the key that protects the row
	Reading
}

// Use forgets all if the memory is of another server, as that may be behind.
func (m *Memory) Use(server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != server {
		m.server, m.rows = server, nil
	}
}

// Forget forgets the rows of a key whose lock is not held: their changes prove nothing.
func (m *Memory) Forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.rows, func(_ string, s seen) bool { return s.key == key })
}

// See notes the reading of a row, unless there is an earlier one, and returns the first
// reading.
func (m *Memory) See(r *Row, now Reading) (first Reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := r.Identity()
	if first, ok := m.rows[name]; ok {
		return first.Reading
	}
	if m.rows == nil {
		m.rows = make(map[string]seen)
	}
	m.rows[name] = seen{r.Key, now}
	return now
}

// Recall returns the first reading of a row.
func (m *Memory) Recall(r *Row) (first Reading, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, ok := m.rows[r.Identity()]
	return was.Reading, ok
}
