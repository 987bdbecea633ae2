package pinned

import (
	"database/sql"
	"errors"
	"slices"
	"sync"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// results are what queries have returned, to be read and closed by their callers. An
// error that comes with the rows reaches only their reader, neither the connection nor,
// after gorm's Scan, its callbacks. So it is read again afterwards. A connection can't be
// given back while rows are open.
type results struct {
	mu   sync.Mutex
	rows []*sql.Rows
	row  []*sql.Row
}

func (r *results) add(rows *sql.Rows) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, rows)
}

func (r *results) addRow(row *sql.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.row = append(r.row, row)
}

// settle gives learn what the database said at the end of rows that have been
// closed, and reports whether others are open. (That a context has ended may be
// said of rows that were read to their end before.)
func (r *results) settle(learn func(error)) (open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = slices.DeleteFunc(r.rows, func(rows *sql.Rows) bool {
		if _, err := rows.Columns(); err == nil { // closed rows have none
			return false
		}
		if err := rows.Err(); dialect.FromServer(err) {
			learn(err)
		}
		return true
	})
	return len(r.rows) > 0
}

// settleRow does the same for single rows, but reads and closes those that are
// open.
func (r *results) settleRow(learn func(error)) (open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range r.row {
		switch err := row.Scan(); { // of a row that has been read: is there another
		case dialect.FromServer(err):
			learn(err)
		case !errors.Is(err, sql.ErrNoRows):
			open = true
		}
	}
	r.row = nil
	return open
}

// close closes what is open.
func (r *results) close(learn func(error)) {
	r.settleRow(learn)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rows := range r.rows {
		_ = rows.Close()
	}
	r.rows = nil
}
