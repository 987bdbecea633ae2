package zklock

import (
	"errors"
	"fmt"

	"github.com/belaygo/belay/lock/lockengine"
)

var (
	// errClosed is returned when the engine has been closed.
	errClosed = fmt.Errorf("%w: zklock: closed", lockengine.ErrDenied)
	// errExpired is returned by a connect when the server does not have the session.
	errExpired = errors.New("the session has expired")
	// errEnded is returned when a lock was acquired in a session that may have ended since.
	errEnded = errors.New("the session may have ended")
	// errOther ends a connection whose answers may be those of other requests.
	errOther = errors.New("the server has answered another request")
	// errStale ends a connection so that the next one prolongs the session.
	errStale = errors.New("the session was not used for too long")
)

// A code is the error of a server's answer.
type code int32

const (
	errInconsistent   code = -2
	errUnimplemented  code = -6
	errBadArguments   code = -8
	errNoNode         code = -101
	errNoAuth         code = -102
	errNodeExists     code = -110
	errSessionExpired code = -112
	errAuthFailed     code = -115
	errMoved          code = -118
	errQuota          code = -125
	errThrottled      code = -127
)

var codes = map[code]string{
	errInconsistent: "runtime inconsistency", errUnimplemented: "unimplemented", errBadArguments: "bad arguments",
	errNoNode: "no node", errNoAuth: "no right to the node", errNodeExists: "node exists", errSessionExpired: "session expired",
	errAuthFailed: "authentication failed", errMoved: "session moved", errQuota: "quota exceeded", errThrottled: "throttled",
}

func (c code) Error() string {
	if text, ok := codes[c]; ok {
		return "zookeeper: " + text
	}
	return fmt.Sprintf("zookeeper: error %d", int32(c))
}

// kind returns the error of package lock for a server's error. A server also answers with an error
// if it can't encode the answer to a request that it has executed. So only errors that it finds
// before prove that the request was not executed.
func (c code) kind() error {
	switch c {
	case errNoAuth, errAuthFailed:
		return lockengine.ErrDenied
	case errQuota:
		return lockengine.ErrRefused
	case errInconsistent, errUnimplemented, errBadArguments, errNoNode, errNodeExists, errSessionExpired, errMoved, errThrottled:
		return lockengine.ErrNotSent
	}
	return lockengine.ErrNoAnswer
}

// rejected returns the error of a request that a server has answered with c.
func rejected(what string, c code) error { return fmt.Errorf("zklock: %s: %w: %w", what, c.kind(), c) }

func notSent(what string, err error) error {
	return fmt.Errorf("zklock: %s: %w: %w", what, lockengine.ErrNotSent, err)
}

func noAnswer(what string, err error) error {
	return fmt.Errorf("zklock: %s: %w: %w", what, lockengine.ErrNoAnswer, err)
}
