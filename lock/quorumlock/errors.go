package quorumlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belaygo/belay/lock/lockengine"
)

// errClosed is returned when the engine has been closed.
var errClosed = fmt.Errorf("%w: quorumlock: closed", lockengine.ErrDenied)

// err returns why the lock was not acquired. left is at how many nodes the owner may still have
// it: a majority of them would be the lock. What a minority keeps expires, and does not keep
// another owner from the other nodes.
func (b *ballot) err(ctx context.Context, left int) error {
	holder, named := b.holder()
	switch {
	case left >= b.e.majority && b.isMarked():
		return fmt.Errorf("%w: %w", lockengine.ErrMarked, b.failure(ctx, lockengine.ErrNoAnswer))
	case left >= b.e.majority:
		return b.failure(ctx, lockengine.ErrNoAnswer)
	case b.isMarked():
		return lockengine.ErrMarked
	case b.answered() && b.count(held) > 0:
		return &lockengine.HeldError{Key: b.r.Key, Holder: holder, Partial: named < b.e.majority && b.count(granted) > 0}
	case left > 0:
		return b.failure(ctx, lockengine.ErrNoAnswer)
	}
	return b.failure(ctx, b.kind())
}

// failure returns an error of a kind with what the nodes answered to the acquire.
func (b *ballot) failure(ctx context.Context, kind error) error {
	errs := make([]error, len(b.votes))
	for i, v := range b.votes {
		if errs[i] = v.err; v.kind == waiting {
			errs[i] = errSilent
		}
	}
	return failure(ctx, "acquire", kind, errs)
}

// errSilent is the error of a node that has not answered yet.
var errSilent = errors.New("no answer yet")

// failure returns an error that matches kind, and the error of ctx if that has ended. Its text has
// the errors of the nodes, but it does not match them.
func failure(ctx context.Context, what string, kind error, errs []error) error {
	var said []string
	for i, err := range errs {
		if err != nil {
			said = append(said, fmt.Sprintf("node %d: %s", i+1, err.Error()))
		}
	}
	text := strings.Join(said, "; ")
	if end := ctx.Err(); end != nil {
		return fmt.Errorf("quorumlock: %s: %w: %w: %s", what, kind, end, text)
	}
	return fmt.Errorf("quorumlock: %s: %w: no majority: %s", what, kind, text)
}

// kind returns what the errors of the nodes that did not grant the lock have in common.
func (b *ballot) kind() error {
	var errs []error
	for _, v := range b.votes {
		switch v.kind {
		case abstained:
			errs = append(errs, lockengine.ErrRefused)
		case held, refused:
			errs = append(errs, v.err)
		}
	}
	return common(errs)
}

// common returns the kind that all errors have, which say that nothing was executed.
func common(errs []error) error {
	for _, kind := range []error{lockengine.ErrDenied, lockengine.ErrUnusable, lockengine.ErrRefused} {
		all := true
		for _, err := range errs {
			all = all && errors.Is(err, kind)
		}
		if all {
			return kind
		}
	}
	return lockengine.ErrNotSent
}
