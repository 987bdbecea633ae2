package dbguard

import (
	"context"
	"database/sql"
)

// A sent is a statement that was sent.
type sent struct {
	query string
	args  []any
}

// adjusts reports whether a statement of PostgreSQL may change which rows the
// transaction sees: by a search path, a role, or what row-level security asks for.
func (st statement) adjusts() bool {
	if st.words()[0] == "SET" {
		return true
	}
	return st.words()[0] == "SELECT" && st.index("SET_CONFIG") > 0 && !st.calls()
}

func (t *Tx) adjusted(query string, args []any, statements []statement) {
	if t.dialect.name != "postgres" || len(statements) != 1 || !statements[0].adjusts() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settings = append(t.settings, sent{query, args})
}

// afresh runs f after the end of the transaction, in one that sees the same rows but
// what it wrote. It is a transaction, as a proxy may send what stands alone to a
// replica that is behind.
func (t *Tx) afresh(f func(context.Context) error) error {
	if t.conn.broken {
		return sql.ErrConnDone
	}
	ctx, cancel := t.judging()
	defer cancel()
	if _, err := t.conn.sql.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	t.mu.Lock()
	settings := t.settings
	t.mu.Unlock()
	var err error
	for _, s := range settings {
		if err == nil {
			_, err = t.conn.sql.ExecContext(ctx, s.query, s.args...)
		}
	}
	if err == nil {
		err = f(ctx)
	}
	if rollback := t.exec("ROLLBACK"); err == nil {
		err = rollback
	}
	return err
}
