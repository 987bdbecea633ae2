package sqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/lock/lockengine"
)

// Acquire implements lockengine.Engine: one statement decides. If another owner has the key, a
// second statement reads the owner. A marker is read after the grant, because it was set
// before the release that made way for the grant; a grant of a marked lock is released
// again.
func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if err := checkRequest(r); err != nil {
		return lockengine.Grant{}, err
	}
	if err := lasting.Check("sqllock", ttl); err != nil {
		return lockengine.Grant{}, err
	}
	token, err := e.acquire(ctx, r, ttl)
	if err != nil {
		return lockengine.Grant{}, err
	}
	granted := token != 0
	switch {
	case !granted && r.UnlessMarked && e.marked(ctx, r.Key):
		return lockengine.Grant{}, lockengine.ErrMarked
	case !granted:
		return lockengine.Grant{}, &lockengine.HeldError{Key: r.Key, Holder: e.holder(ctx, r.Key)}
	case r.UnlessMarked && e.marked(ctx, r.Key):
		return lockengine.Grant{}, errors.Join(lockengine.ErrMarked, e.undo(ctx, r))
	}
	return lockengine.Grant{Token: token, Place: e.place()}, nil
}

// acquire returns the token of a grant, or 0.
func (e *engine) acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (token int64, err error) {
	const what = "acquire"
	if err := e.checkKeys(ctx); err != nil {
		return 0, err
	}
	name, us := []byte(r.Key), microseconds(ttl)
	if e.Returning {
		err = e.query(ctx, what, e.dialect.acquire, []any{name, r.Owner, us}, func(scan sqldb.Scan) error {
			return scan(&token)
		})
		return token, err
	}
	res, err := e.exec(ctx, what, e.dialect.acquire, []any{name, r.Owner, us, r.Owner, r.Owner, r.Owner, r.Owner, us})
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// holder returns the holder of a key, as far as it can be read.
func (e *engine) holder(ctx context.Context, key string) lockengine.Holder {
	h, err := e.Inspect(ctx, key)
	if err != nil {
		return lockengine.Holder{Place: e.place()}
	}
	return h
}

// Inspect implements lockengine.Engine.
func (e *engine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	h := lockengine.Holder{Place: e.place()}
	err := e.query(ctx, "inspect", "SELECT owner, until_us - {now} FROM belay_lock WHERE name = ? AND NOT "+isFree, []any{[]byte(key)},
		func(scan sqldb.Scan) error {
			var us int64
			err := scan(&h.Owner, &us)
			h.TTL = remaining(us)
			return err
		})
	if err != nil {
		return lockengine.Holder{}, err
	}
	return h, nil
}

// undo releases a lock that was granted, but must not be used.
func (e *engine) undo(ctx context.Context, r lockengine.Request) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := e.release(ctx, r); err != nil && !errors.Is(err, lockengine.ErrNotHeld) {
		// Its text only: whatever the outcome of the release, the acquire was executed.
		return fmt.Errorf("%w: release it again: %s", lockengine.ErrNoAnswer, err.Error())
	}
	return nil
}
