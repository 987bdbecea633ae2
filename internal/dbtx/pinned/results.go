package pinned

import (
	"database/sql"
	"errors"
	"slices"
	"sync"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// results are the rows that queries have returned, to be read and closed by their
// callers. An error that comes with the rows reaches only their reader, neither the
// connection nor, after gorm's Scan, its callbacks. So it is read again afterwards. A
// connection cannot be given back while rows are open.
type results struct {
	mu   sync.Mutex
	rows []*sql.Rows
	row  []*sql.Row
	raw  int // open rows of the driver's own interface

	first [1]*sql.Rows // room for those of one query
}

// addRaw counts n more open rows of the driver's own interface.
func (r *results) addRaw(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw += n
}

func (r *results) add(rows *sql.Rows) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		r.rows = r.first[:0]
	}
	r.rows = append(r.rows, rows)
}

func (r *results) addRow(row *sql.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.row = append(r.row, row)
}

// settle passes the errors at the end of closed rows to learn, and reports whether
// other rows are open. (The error may be an ended context, even if the rows were read
// to their end before.)
func (r *results) settle(learn func(error)) (open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = slices.DeleteFunc(r.rows, func(rows *sql.Rows) bool {
		if _, err := rows.Columns(); err == nil { // closed rows have none
			return false
		}
		if err := rows.Err(); dialect.FromServer(err) || dialect.Swaps(err) {
			learn(err)
		}
		return true
	})
	return len(r.rows)+r.raw > 0
}

// settleRow settles single rows, and reads and closes the open ones.
func (r *results) settleRow(learn func(error)) (open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range r.row {
		switch err := row.Scan(); { // after the row was read: is there another
		case dialect.FromServer(err):
			learn(err)
		case !errors.Is(err, sql.ErrNoRows):
			open = true
		}
	}
	r.row = nil
	return open
}

// close closes all open rows.
func (r *results) close(learn func(error)) {
	r.settleRow(learn)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rows := range r.rows {
		_ = rows.Close()
	}
	r.rows = nil
}
