package chaos_test

import (
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// bedWords are what servers and drivers say while a bed is hurt, and shortly after.
var bedWords = map[faultKind][]string{
	"": slices.Concat(cutWords, awayWords), // of any fault: the front cuts connections
	// A Galera node without its cluster refuses all.
	nodeKilled: notReady, twoKilled: notReady, allKilled: slices.Concat(notReady, poolerWords), nodePaused: notReady, nodeCut: notReady,
	poolerKilled: poolerWords, poolerPaused: poolerWords,
	readOnly:     demoted,
	promotion:    demoted,
	pausedWriter: demoted,
	cutWriter:    demoted,
	switchOver:   demoted,
	storm:        {"Too many connections", "too many clients", "remaining connection slots", "no more connections allowed"},
	slowDisk:     {"Lock wait timeout exceeded"},
	fullDisk:     slices.Concat(notReady, []string{"is full", "No space left", "Got error 28", "could not extend", "Error writing"}),
}

// A pooler tries to reach a dead server only now and then.
var poolerWords = []string{"server login has been failing", "server conn crashed", "server_login_retry"}

// demoted is what a node says that takes no writes, and what Belay says of a repeat when the
// row that it met is on the former writer.
var demoted = []string{"read-only option", "read-only transaction", "recovery is in progress", "cannot execute", "the database is another server"}

// A member of a group is offline when it was put out; until it knows, it waits for the others
// in vain. So does a node of Galera, whose lock wait ends.
var notReady = []string{"offline mode", "waiting for group transactions", "cannot be used on the current member state", "WSREP has not yet prepared node", "Lost connection", "Lock wait timeout exceeded", "Not connected to Primary Component"}

// explainedByBed reports whether a call ended with an error that a fault of the bed explains.
func (h *history) explainedByBed(c *call) bool {
	return slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.Kind.ofBed() && f.From <= c.returned && c.called <= f.To+int64(maxIdle+ending) &&
			slices.ContainsFunc(slices.Concat(bedWords[""], bedWords[f.Kind]), func(s string) bool { return strings.Contains(c.result, s) })
	})
}

// unheard reports whether err says that a statement got no answer, or the one that its
// session has ended or that its server serves nobody.
func unheard(err error) bool {
	if err == nil || errors.Is(err, driver.ErrSkip) {
		return false
	}
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		return slices.Contains([]uint16{1047, 1053, 1180, 1317, 1927}, e.Number)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(e.Code, "57P")
	}
	return true
}
