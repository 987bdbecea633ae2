package redislock

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/lockengine"
)

// Prefixes of errors that Redis returns before it runs a script, or at its first write:
// nothing was written.
var (
	// A failover, a migration or a restart is under way, or all connections are in use.
	prefixesPassing = []string{"CLUSTERDOWN", "TRYAGAIN", "LOADING", "MASTERDOWN", "MOVED", "ASK", "READONLY",
		"max number of clients reached"}
	// The server is busy with another script.
	prefixesBusy = []string{"BUSY"}
	// The server is out of memory, cannot save, or has too few replicas.
	prefixesWriteless = []string{"OOM", "MISCONF", "NOREPLICAS"}
	// The client cannot log in or may not run scripts, or the server is no cluster.
	prefixesDenied = []string{"NOAUTH", "WRONGPASS", "AUTH <password> called without", "NOPERM",
		"This instance has cluster support disabled"}
	// A provider's proxy rejects the script, because of its text or its keys, or runs no
	// scripts.
	prefixesScript = []string{"bad lua script", "eval/evalsha", "for redis cluster, eval/evalsha", "command eval not support"}
	// A command within a script failed: only such errors contain these texts.
	prefixesInScript = []string{"@user_script:", "ACL failure in script: "}
)

// errClosed is returned when the engine has been closed.
var errClosed = fmt.Errorf("%w: redislock: closed", lockengine.ErrDenied)

var (
	errSilent    = errors.New("no answer") // the node cannot be reached or does not answer
	errUndecided = errors.New("undecided") // the wait was too short, or the connection broke
)

// silentNodeError is the error of a request that the breaker did not let through to a
// node.
type silentNodeError struct{ addr string }

func (e *silentNodeError) Error() string {
	return "redislock: node " + cmp.Or(e.addr, "of Sentinel") + " is not answering: check that it runs, and its address"
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
	case errors.Is(err, lockengine.ErrNotSent):
		return err
	case refused(err), answered && says(err, prefixesBusy):
		return fmt.Errorf("%w: %w", lockengine.ErrNotSent, err)
	case answered && s.unusable(err):
		return fmt.Errorf("%w: %w%s", lockengine.ErrUnusable, err, advice(err))
	case denied(err):
		return fmt.Errorf("%w: %w%s", lockengine.ErrDenied, err, advice(err))
	case answered && says(err, prefixesWriteless):
		return fmt.Errorf("%w: %w", lockengine.ErrRefused, err)
	case answered, errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%w: %w", lockengine.ErrNoAnswer, err)
}

// advice returns what to do about a rejection, to follow its text; "" if there is no advice.
func advice(err error) string {
	switch {
	case says(err, []string{"NOAUTH", "WRONGPASS"}):
		return ": check the user and the password in the URL of Redis"
	case strings.Contains(err.Error(), "WRONGTYPE "):
		return ": another library or program keeps something under this name, so use another key"
	}
	return ""
}

// refused reports whether nothing was executed because of a fault that often
// passes within moments.
func refused(err error) bool {
	if undialled(err) || untrusted(err) || errors.Is(err, errSilent) || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	_, answered := errors.AsType[redis.Error](err)
	return answered && says(err, prefixesPassing)
}

// denied reports whether nothing was executed because of the client, or because its scripts
// are not run. A right that a script misses in its middle is another matter: it may have
// written before.
func denied(err error) bool {
	if errors.Is(err, redis.ErrClosed) {
		return true
	}
	_, answered := errors.AsType[redis.Error](err)
	inScript := func(text string) bool { return strings.Contains(err.Error(), text) }
	return answered && (says(err, prefixesDenied) || says(err, prefixesScript)) && !slices.ContainsFunc(prefixesInScript, inScript)
}

// says reports whether an answer begins with one of these texts. Before version 7,
// Redis wraps an error in a script into another text.
func says(answer error, texts []string) bool {
	for _, text := range texts {
		if redis.HasErrorPrefix(answer, text) || strings.Contains(answer.Error(), ": -"+text+" ") {
			return true
		}
	}
	return false
}

// unusable reports whether an answer to s means that the key has another type or, for a
// caller that does not hold the lock, that the user may not access the key. A command
// that the user may not run fails for all keys.
func (s *script) unusable(answer error) bool {
	if strings.Contains(answer.Error(), "WRONGTYPE ") {
		return true
	}
	ofHolder := s == renewScript || s == releaseScript
	return !ofHolder && keyDenied(answer)
}

// keyDenied reports whether an answer means that the user may not access a key.
func keyDenied(answer error) bool {
	_, denied, _ := strings.Cut(answer.Error(), "NOPERM ")
	return strings.Contains(denied, " to access ") && strings.Contains(denied, " key")
}

// undialled reports whether there was no connection to send anything on.
func undialled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// alertsOfHandshake are parts of those TLS alerts that only end a handshake. A client may read the
// alert about its own certificate after its side of the handshake is complete.
var alertsOfHandshake = []string{"certificate", "handshake failure", "access denied", "error decrypting message", "protocol version"}

// untrusted reports whether the TLS handshake failed, as with an expired certificate, so that
// the server has read no request.
func untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	alert := func(text string) bool { return strings.Contains(op.Err.Error(), text) }
	return ok && op.Op == "remote error" && slices.ContainsFunc(alertsOfHandshake, alert)
}

// broken reports whether the connection ended before an answer came.
func broken(err error) bool {
	if err == nil {
		return false
	}
	network, ok := errors.AsType[net.Error](err)
	return errors.Is(inspectScript.classify(err), lockengine.ErrNoAnswer) && (!ok || !network.Timeout())
}
