package zklock

import (
	"errors"
	"fmt"

	"github.com/belaygo/belay/lock"
)

var (
	// errClosed is returned when the engine has been closed.
	errClosed = fmt.Errorf("%w: zklock: closed", lock.ErrDenied)
	// errExpired is returned by a connect when the server does not have the session.
	errExpired = errors.New("the session has expired")
	// errStale ends a connection so that the next one prolongs the session.
	errStale = errors.New("the session was not used for too long")
)

// A code is the error of a server's answer. The request was not executed, unless the server
// itself lost it.
type code int32

const (
	codeInconsistent   code = -2
	codeConnectionLoss code = -4
	codeTimeout        code = -7
	codeNoNode         code = -101
	codeNoAuth         code = -102
	codeNodeExists     code = -110
	codeExpired        code = -112
	codeAuthFailed     code = -115
	codeMoved          code = -118
	codeQuota          code = -125
	codeThrottled      code = -127
)

var codes = map[code]string{
	codeInconsistent: "runtime inconsistency", codeConnectionLoss: "connection loss", codeTimeout: "operation timeout",
	codeNoNode: "no node", codeNoAuth: "no right to the node", codeNodeExists: "node exists", codeExpired: "session expired",
	codeAuthFailed: "authentication failed", codeMoved: "session moved", codeQuota: "quota exceeded", codeThrottled: "throttled",
}

func (c code) Error() string {
	if text, ok := codes[c]; ok {
		return "zookeeper: " + text
	}
	return fmt.Sprintf("zookeeper: error %d", int32(c))
}

// kind is what a server's error says of the request.
func (c code) kind() error {
	switch c {
	case codeConnectionLoss, codeTimeout:
		return lock.ErrNoAnswer
	case codeNoAuth, codeAuthFailed:
		return lock.ErrDenied
	case codeQuota:
		return lock.ErrRefused
	}
	return lock.ErrNotSent // it was rejected
}

// rejected is the error of an answer.
func rejected(what string, c code) error { return fmt.Errorf("zklock: %s: %w: %w", what, c.kind(), c) }

func notSent(what string, err error) error {
	return fmt.Errorf("zklock: %s: %w: %w", what, lock.ErrNotSent, err)
}

func noAnswer(what string, err error) error {
	return fmt.Errorf("zklock: %s: %w: %w", what, lock.ErrNoAnswer, err)
}
