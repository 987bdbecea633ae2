package dbtx

import (
	"errors"
	"strconv"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
)

var (
	// errUnopened is the error of a transaction that has to be begun anew.
	errUnopened = errors.New("dbguard: the transaction was not begun")
	errMoved    = errors.New("dbguard: a pooler has begun the transaction in another session")
)

// Waits reports whether statements of Belay wait for one that they can be sent with: see Options.Opens.
func (t *Tx) Waits() bool { return t.conn.Waits() }

// Unopened reports whether the transaction was not begun, though Begin has succeeded: it has done
// nothing, and may be begun anew, without Options.Opens.
func (t *Tx) Unopened() bool { return t.conn.Unopened() }

// Open sends what waits. It reads the rows that were found on the way.
func (t *Tx) Open() error {
	if err := t.conn.Take(t.ctx); err != nil {
		return err
	}
	t.conn.Opened()
	t.conn.Give()
	if t.Unopened() {
		return errUnopened
	}
	if err := t.judge.LookAgain(); err != nil {
		t.learn(err)
		return err
	}
	return nil
}

// LookLater has a query sent with those that wait. there gets whether it has found a row.
func (t *Tx) LookLater(query string, args []any, there func(bool)) {
	t.conn.Later(pinned.Step{
		Statement: pipeline.Statement{Query: "SELECT concat_ws(' ', EXISTS (" + query + "), pg_backend_pid())", Args: args},
		Then: func(r pipeline.Result) error {
			found, session, _ := strings.Cut(r.Text, " ")
			if session != strconv.FormatUint(t.conn.Session.ID, 10) {
				return t.moved()
			}
			there(found == "t")
			return nil
		},
	})
}

// moved notes that an opening was not in the session that is known: what it has read may be another
// server's, which is behind.
func (t *Tx) moved() error {
	t.notePooler()
	return errMoved
}

// surround puts the bound of a wait around the INSERT of a claim, and behind it the question for what
// Commit would have to ask by a statement of its own.
func (t *Tx) surround(bound dialect.LockWait) {
	set := func(to string) pinned.Step {
		return pinned.Step{Statement: pipeline.Statement{Query: dialect.SetLockWait, Args: []any{to}}}
	}
	t.conn.Later(set(bound.During))
	t.conn.Behind(set(bound.After), pinned.Step{
		Statement: pipeline.Statement{Query: t.conn.Session.TransactionQuery()},
		Then: func(r pipeline.Result) error {
			if t.reported.Transaction = t.conn.Session.Transaction(r.Text); !t.reported.Own {
				return t.moved()
			}
			return nil
		},
	})
}
