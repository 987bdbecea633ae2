package dbtx

import (
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/sqlfront"
)

// Options adjust a guarded transaction. The zero value is useful.
type Options struct {
	// Alive is called before each statement and before COMMIT. When it returns
	// an error, the statement is refused with it. Default: never an error.
	Alive func() error
	// Held is called by Resolve if a row proves that nothing was committed. An error
	// means that another caller may have had the lock, and deleted the row or made it
	// again. Default: never an error.
	Held func() error
	// BeginTimeout bounds the wait for a connection and the BEGIN: see ErrNoConnection.
	// Defaults to 0, which leaves that to the context.
	BeginTimeout time.Duration
	// Defers is set if the caller calls Tx.Flush before the program uses the transaction, and Tx.Abandon
	// then. Where the driver can send several statements at once, the BEGIN, looks at rows, and what
	// surrounds a claim wait for a statement whose result is needed, at most until Flush.
	Defers bool
	// Begun is called once the transaction has begun on a server. Default: nothing.
	Begun func(Server)
	// EndTimeout bounds COMMIT, ROLLBACK and the reads after a conflict, which
	// do not end with the context. Defaults to 5 s.
	EndTimeout time.Duration
	// Key is the key of the lock, which protects the rows that are named: see Under.
	// Conflicts and warnings name it. Default: none.
	Key string
	// Keyless is set if no key protects the rows that are named outside of Under: no
	// evidence is collected for them.
	Keyless bool
	// Family is the family of the server, if it shows another one: outcomes are proven as far as by
	// both. Default: what the server shows.
	Family dialect.Family
	// Memory is shared by the attempts of one operation, so that a second one does not
	// hide the first one's readings. Default: a new one.
	Memory *Memory
	// SQL is the handle by which the transaction is given to programs that write SQL. Default:
	// none, and Tx.SQL returns an error.
	SQL *sqlfront.Handle
	// Logger receives warnings about the database and the keys. Default: none.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Alive == nil {
		o.Alive = func() error { return nil }
	}
	if o.Held == nil {
		o.Held = func() error { return nil }
	}
	if o.Begun == nil {
		o.Begun = func(Server) {}
	}
	if o.EndTimeout <= 0 {
		o.EndTimeout = 5 * time.Second
	}
	if o.Memory == nil {
		o.Memory = new(Memory)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
