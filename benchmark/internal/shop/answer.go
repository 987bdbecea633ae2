package shop

import (
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock/lockengine"
)

// A Result is what became of a request.
type Result string

// The results.
const (
	Done        Result = "done"
	SoldOut     Result = "sold_out"    // nothing left to sell
	Busy        Result = "busy"        // first layer: another caller has the lock, or Redis remembers that it is done
	Duplicate   Result = "duplicate"   // second layer: the database has the row already
	Stale       Result = "stale"       // second layer: the row has changed since it was read, without the lock
	Intercepted Result = "intercepted" // second layer: a lock failed, the database refused
	Failed      Result = "error"
)

// BySecondLayer reports whether the database refused the request.
func (r Result) BySecondLayer() bool { return r == Duplicate || r == Stale || r == Intercepted }

// Refused reports whether the request was rejected as it should be.
func (r Result) Refused() bool { return r != Done && r != Failed }

// An Answer is what the service returns to its caller.
type Answer struct {
	Result Result `json:"result"`
	Error  string `json:"error,omitempty"`
}

// judge puts the end of an operation into words.
func judge(err error) Answer {
	switch {
	case err == nil:
		return Answer{Result: Done}
	case errors.Is(err, ErrSoldOut):
		return Answer{Result: SoldOut}
	case errors.Is(err, guard.ErrBusy), errors.Is(err, errBusy), errors.Is(err, lockengine.ErrMarked):
		return Answer{Result: Busy}
	case errors.Is(err, guard.ErrIntercepted), errors.Is(err, guard.ErrLost):
		return Answer{Result: Intercepted}
	case errors.Is(err, guard.ErrStale), errors.Is(err, errConflict):
		return Answer{Result: Stale}
	case errors.Is(err, guard.ErrDuplicate), duplicateEntry(err):
		return Answer{Result: Duplicate}
	}
	return Answer{Result: Failed, Error: strings.ToValidUTF8(err.Error(), "")}
}

func duplicateEntry(err error) bool {
	const erDupEntry = 1062
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && e.Number == erDupEntry
}
