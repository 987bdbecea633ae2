package sqllock

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/lock/lockengine"
)

// Adopt implements ability.Adopter. Two statements acquire up to 256 locks: the first takes
// those that no other owner has, and the second renews them. The answer to the second shows which
// locks were taken. The error for a lock that was not taken matches lockengine.ErrNotHeld.
func (e *engine) Adopt(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	errs := make([]error, 0, len(rs))
	for some := range slices.Chunk(rs, batch) {
		if err := e.adopt(ctx, some, ttl); err != nil {
			errs = append(errs, slices.Repeat([]error{err}, len(some))...)
			continue
		}
		errs = append(errs, e.renew(ctx, some, ttl)...)
	}
	return errs
}

func (e *engine) adopt(ctx context.Context, rs []lockengine.Request, ttl time.Duration) error {
	if err := e.checkKeys(ctx); err != nil {
		return err
	}
	rs = slices.Clone(rs) // in one order for all, so that processes do not deadlock
	slices.SortFunc(rs, func(a, b lockengine.Request) int { return strings.Compare(a.Key, b.Key) })
	var args []any
	n := 0
	for _, r := range rs {
		if checkRequest(r) == nil { // the others are not held after this
			args = append(args, []byte(r.Key), r.Owner, microseconds(ttl))
			n++
		}
	}
	if n == 0 {
		return nil
	}
	rows := sqldb.List("(?, ?, {now} * 1024, {now} + ?)", ", ", n)
	_, err := e.exec(ctx, "adopt", "INSERT INTO belay_lock (name, owner, token, until_us) VALUES "+rows+e.takeOver, args)
	return err
}
