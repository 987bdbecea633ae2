package dbtx

import (
	"errors"
	"strconv"
	"strings"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// errMoved is the error of a prelude that was not in the session which is known.
var errMoved = errors.New("dbguard: a pooler has begun the transaction in another session")

// errSpoken is the error of a prelude in which Belay is not alone.
var errSpoken = errors.New("dbguard: a plugin sends statements of its own")

// Deferring reports whether statements of Belay wait for one that they can be sent with: see
// Options.Defers.
func (t *Tx) Deferring() bool { return t.conn.Deferring() }

// Flush sends what waits, and the question of Commit if no claim was sent with it. It reads the rows that
// were found on the way.
func (t *Tx) Flush() error {
	if !t.Deferring() {
		return t.conn.Failed()
	}
	if err := t.conn.Take(t.ctx); err != nil {
		return err
	}
	if t.conn.Waiting() { // there was no claim
		t.conn.Defer(t.question())
	}
	err := t.conn.Flush()
	t.conn.Give()
	if err != nil {
		return err
	}
	if !t.conn.OnlyClaims() {
		return t.spoken()
	}
	if err := t.judge.LookAgain(); err != nil {
		t.learn(err)
		return err
	}
	return nil
}

// Abandon rolls the transaction back if its prelude has failed, and may succeed statement by statement.
// It returns the prelude's error then: nothing was done, and another transaction is to be begun, without
// Options.Defers.
func (t *Tx) Abandon() error {
	err := t.conn.Failed()
	own := errors.Is(err, errSpoken) || errors.Is(err, errMoved) // no caller gets these, even if the context has ended
	again := err != nil && !errors.Is(err, pinned.ErrNoAnswer) && (own || t.ctx.Err() == nil)
	if !again {
		return nil
	}
	t.Rollback()
	return err
}

// KeepApart is called once the transaction is committed that stands for an abandoned one. If the server has
// refused that one's prelude, it has taken its statements one by one: so later ones are sent, for a while.
func (t *Tx) KeepApart(refused error) {
	if refused != nil && dialect.FromServer(refused) && !dialect.Transient(refused) {
		t.database.keepApart(refused, t.options.Logger)
	}
}

// DeferLook defers the query that build returns, which gorm may build without sending it. there gets
// whether the query has found a row. If something else was sent meanwhile, or would be sent, the prelude fails.
func (t *Tx) DeferLook(build func() (query string, args []any, err error), there func(bool)) error {
	used, unsent := t.conn.Use(), t.unsent.Load()
	query, args, err := build()
	if t.conn.UsedSince(used) || t.unsent.Load() != unsent || errors.Is(err, protected.ErrNoText) {
		return t.spoken()
	}
	if err != nil {
		t.conn.Fail(err)
		return err
	}
	t.conn.Defer(pinned.Step{
		Statement: pipeline.Statement{Query: "SELECT concat_ws(' ', EXISTS (" + query + "\n), pg_backend_pid())", Args: args}, // it may end in a comment
		Then: func(r pipeline.Result) error {
			found, session, _ := strings.Cut(r.Text, " ")
			if session != strconv.FormatUint(t.conn.Session.ID, 10) {
				return t.moved()
			}
			there(found == "t")
			return nil
		},
	})
	return nil
}

// spoken fails the prelude because a plugin has sent something with it, or would. What that changes, as the
// schema or the role, is for the statements behind it, and those of a prelude come in another order than one by one.
func (t *Tx) spoken() error {
	t.conn.Fail(errSpoken)
	t.database.keepApart(errSpoken, t.options.Logger)
	return t.conn.Failed()
}

// moved notes that a prelude was not in the session that is known: what it has read may be another
// server's, which is behind.
func (t *Tx) moved() error {
	t.notePooler()
	return errMoved
}

// surround lets the bound of a wait surround the INSERT of a claim. Behind it comes the question of Commit.
func (t *Tx) surround(bound dialect.LockWait) {
	set := func(to string) pinned.Step {
		return pinned.Step{Statement: pipeline.Statement{Query: dialect.SetLockWait, Args: []any{to}}}
	}
	t.conn.Limit(t.options.EndTimeout + bound.Longest)
	t.conn.Surround(set(bound.During), set(bound.After), t.question())
}

// question is what Commit would have to ask by a statement of its own.
func (t *Tx) question() pinned.Step {
	return pinned.Step{
		Statement: pipeline.Statement{Query: t.conn.Session.TransactionQuery()},
		Then: func(r pipeline.Result) error {
			if t.reported.Transaction = t.conn.Session.Transaction(r.Text); !t.reported.Own {
				return t.moved()
			}
			return nil
		},
	}
}
