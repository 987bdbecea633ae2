package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock"
)

// What the answer of a server begins with that has executed nothing of a script,
// or no more than its reads: this is checked before the script runs, or at its
// first write.
var (
	// A failover, a migration or a restart is under way, or all connections are in use.
	prefixesPassing = []string{"CLUSTERDOWN", "TRYAGAIN", "LOADING", "MASTERDOWN", "MOVED", "ASK", "READONLY",
		"max number of clients reached"}
	// The server is busy with somebody's script.
	prefixesBusy = []string{"BUSY"}
	// The server is out of memory, can't save, or has too few replicas.
	prefixesWriteless = []string{"OOM", "MISCONF", "NOREPLICAS"}
	// The client can't log in or may not run scripts, or the server is no cluster.
	prefixesDenied = []string{"NOAUTH", "WRONGPASS", "AUTH <password> called without", "NOPERM",
		"This instance has cluster support disabled"}
	// A command within a script failed: only these errors have such a text.
	prefixesInScript = []string{"@user_script:", "ACL failure in script: "}
)

// errClosed is returned when the engine has been closed.
var errClosed = fmt.Errorf("%w: redislock: closed", lock.ErrDenied)

var (
	errSilent    = errors.New("no answer") // the node can't be reached or says nothing
	errUndecided = errors.New("undecided") // nobody waited long enough, or the connection broke
)

// silentNodeError is the error of a request that was kept away from a node.
type silentNodeError struct{ addr string }

func (e *silentNodeError) Error() string {
	return "redislock: node " + cmp.Or(e.addr, "of Sentinel") + " is not answering"
}

func (s *script) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redislock: %s: %w", s.name, s.classify(err))
}

// classify adds to the error of s whether s may have been executed.
func (s *script) classify(err error) error {
	_, answered := errors.AsType[redis.Error](err)
	switch {
	case errors.Is(err, lock.ErrNotSent):
		return err
	case refused(err), answered && says(err, prefixesBusy):
		return fmt.Errorf("%w: %w", lock.ErrNotSent, err)
	case answered && s.unusable(err):
		return fmt.Errorf("%w: %w", lock.ErrUnusable, err)
	case denied(err):
		return fmt.Errorf("%w: %w", lock.ErrDenied, err)
	case answered && says(err, prefixesWriteless):
		return fmt.Errorf("%w: %w", lock.ErrRefused, err)
	case answered, errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%w: %w", lock.ErrNoAnswer, err)
}

// refused reports whether nothing was executed because of a fault that often
// passes within moments.
func refused(err error) bool {
	if undialled(err) || errors.Is(err, errSilent) || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	_, answered := errors.AsType[redis.Error](err)
	return answered && says(err, prefixesPassing)
}

// denied reports whether nothing was executed because of the client. A right that
// a script misses in its middle is another matter: it may have written before.
func denied(err error) bool {
	if errors.Is(err, redis.ErrClosed) {
		return true
	}
	_, answered := errors.AsType[redis.Error](err)
	inScript := func(text string) bool { return strings.Contains(err.Error(), text) }
	return answered && says(err, prefixesDenied) && !slices.ContainsFunc(prefixesInScript, inScript)
}

// says reports whether an answer begins with one of these texts. Before version
// 7, Redis puts an error in a script into a text of its own.
func says(answer error, texts []string) bool {
	for _, text := range texts {
		if redis.HasErrorPrefix(answer, text) || strings.Contains(answer.Error(), ": -"+text+" ") {
			return true
		}
	}
	return false
}

// unusable reports whether an answer to s says that the key has another type, or,
// to a caller who does not hold it, that it is kept from the user. A command that
// is kept from the user fails for all keys.
func (s *script) unusable(answer error) bool {
	if strings.Contains(answer.Error(), "WRONGTYPE ") {
		return true
	}
	_, denied, _ := strings.Cut(answer.Error(), "NOPERM ")
	ofHolder := s == renewScript || s == releaseScript
	return !ofHolder && strings.Contains(denied, " to access ") && strings.Contains(denied, " key")
}

// undialled reports whether there was no connection to send anything on.
func undialled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// broken reports whether the connection ended before an answer came.
func broken(err error) bool {
	if err == nil {
		return false
	}
	network, ok := errors.AsType[net.Error](err)
	return errors.Is(inspectScript.classify(err), lock.ErrNoAnswer) && (!ok || !network.Timeout())
}
