package guard

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/instance"
	"github.com/belaygo/belay/notify"
)

// A Policy tells what Do does while the lock can't be asked for.
type Policy int

const (
	// FailClosed has Do return ErrUnavailable. Events of the verdict notify.VerdictUnavailable
	// tell how many operations were refused on a node: one 2 s after the first
	// refusal, the next 10 s later, then ever more seldom, up to one a minute, and
	// one at Close.
	FailClosed Policy = iota
	// DBOnly lets operations go on without the lock, guarded by the database
	// alone. Only a transaction that wrote nothing (and called no function that may
	// have), or wrote each row that the key protects by a plain insert or a versioned
	// statement, is committed; for any other Do returns ErrUnavailable. The callers of
	// one process still go one after the other for each key, and DBOnlyLimit bounds
	// them in all.
	DBOnly
)

func (p Policy) valid() bool { return p == FailClosed || p == DBOnly }

func (p Policy) String() string {
	switch p {
	case FailClosed:
		return "FailClosed"
	case DBOnly:
		return "DBOnly"
	}
	return fmt.Sprintf("Policy(%d)", int(p))
}

// A Family is the name of a kind of database server that speaks the protocol of MySQL or PostgreSQL
// and ends transactions otherwise, in upper or lower case: see Config.Family.
type Family string

// Config describes a Guard. Service is required.
type Config struct {
	// Service is the name under which lock failures are reported.
	Service string
	// Instance tells one instance of the service from another. Default:
	// host name and process id.
	Instance string
	// Publisher takes the events; an outbox.Outbox loses none. Default: the Logger
	// gets them.
	Publisher notify.Publisher
	// OnUnavailable is what to do while the lock can't be asked for, until SetPolicy
	// changes it. Default FailClosed.
	OnUnavailable Policy
	// DBOnlyLimit limits the operations that run without the lock at a time. Without it,
	// contention on a hot row can overload the database. Of a Call it counts the two transactions,
	// and not the time between them. Default 8.
	DBOnlyLimit int
	// EndTimeout bounds COMMIT and ROLLBACK, the reads and the question to the
	// lock after a conflict, the search for the outcome of a commit, the
	// hand-over of an event, and at the end of an outage the wait for operations
	// that still run without the lock, each. They do not end with the caller's
	// context. Default 5 s.
	EndTimeout time.Duration
	// Family is the kind of the database server, such as "TiDB" or "PgDog", if the server shows
	// another one: a proxy before it, or a setting, hides what it is. The names are those of
	// docs/guarantees.md. Family only takes proofs away: the outcome of a COMMIT is proven if it is
	// proven on what the server shows and on Family. Default: what the server shows.
	Family Family
	// Calls makes the Guard look for requests of Call that became undecided, once a minute, and
	// publish an event for each. Otherwise the event comes with the next repeat of the request. It also
	// adds metrics of what is pending: each scrape queries the database, for a second at most. The table
	// belay_pending must be there. Default false.
	Calls bool
	// Name tells several Guards of one process apart in metrics. Default:
	// "guard".
	Name string
	// Observer is told of each Do and its steps, for traces. Default: none.
	Observer Observer
	// Logger gets what can't be returned, such as an event that the Publisher does
	// not take. Default: slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Service == "":
		return c, errors.New("guard: Config.Service is empty")
	case !c.OnUnavailable.valid():
		return c, fmt.Errorf("guard: Config.OnUnavailable is %d, want FailClosed or DBOnly", c.OnUnavailable)
	case c.DBOnlyLimit < 0:
		return c, fmt.Errorf("guard: Config.DBOnlyLimit is %d", c.DBOnlyLimit)
	case c.EndTimeout < 0:
		return c, fmt.Errorf("guard: Config.EndTimeout is %v", c.EndTimeout)
	}
	if c.DBOnlyLimit == 0 {
		c.DBOnlyLimit = 8
	}
	if c.EndTimeout == 0 {
		c.EndTimeout = 5 * time.Second
	}
	if c.Instance == "" {
		c.Instance = instance.Name()
	}
	if c.Publisher == nil {
		c.Publisher = notify.Log(c.Logger)
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	if c.Name == "" {
		c.Name = "guard"
	}
	c.Logger = background.Logger(c.Logger)
	return c, nil
}
