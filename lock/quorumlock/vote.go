package quorumlock

import (
	"errors"

	"github.com/belaygo/belay/lock/lockengine"
)

// A vote is the answer of a node to an acquire.
type vote struct {
	node   int
	kind   kind
	token  int64
	holder lockengine.Holder // of held
	err    error
}

type kind int

const (
	unasked   kind = iota
	waiting        // there is no answer yet
	granted        //
	abstained      // granted by a node that does not vote
	held           // by another owner
	marked         // as done; nothing was taken
	refused        // for another reason; nothing was taken
	unclear        // the lock may have been taken
)

func newVote(node int, token int64, err error) vote {
	v := vote{node: node, token: token, err: err}
	other, isHeld := errors.AsType[*lockengine.HeldError](err)
	switch {
	case err == nil:
		v.kind = granted
	case errors.Is(err, errAbstains):
		v.kind = abstained
	case isHeld:
		v.kind, v.holder = held, other.Holder
	case errors.Is(err, lockengine.ErrNoAnswer):
		v.kind = unclear
	case errors.Is(err, lockengine.ErrMarked):
		v.kind = marked
	case nothing(err):
		v.kind = refused
	default:
		v.kind = unclear
	}
	return v
}

// nothing reports whether an error says that nothing was executed.
func nothing(err error) bool {
	return (errors.Is(err, lockengine.ErrNotSent) || errors.Is(err, lockengine.ErrRefused) || errors.Is(err, lockengine.ErrUnusable)) &&
		!errors.Is(err, lockengine.ErrNoAnswer)
}

// isMarked reports whether the node says that the key is marked.
func (v vote) isMarked() bool { return v.kind >= marked && errors.Is(v.err, lockengine.ErrMarked) }

// mayHold reports whether the owner may have the lock at the node, now or later.
func (v vote) mayHold() bool {
	return v.kind == waiting || v.kind == granted || v.kind == abstained || v.kind == unclear
}
