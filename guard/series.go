package guard

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/sqlfront"
	"github.com/belaygo/belay/notify"
)

// A series is the attempts of an operation under the same locks, each a transaction.
type series struct {
	db      *gorm.DB
	sql     *sqlfront.Handle // of db's pool
	cfg     *Config
	metrics *metrics
	ctx     context.Context // the caller's, and what the Observer adds
	plan    *plan
	held    held
	claims  claims
	change  Change // that the operation makes, if it was given to Apply
	canary  *canary
	gate    *gate
	pass    *pass // nil if the call has not waited there
	budget  budget

	memory  dbtx.Memory // what the attempts saw first of the rows
	tx      *dbtx.Tx    // of the last attempt
	last    ending      // of the last attempt, also if it did not return
	earlier []*finding  // about locks under which attempts were overtaken and made again
}

// claims is what an attempt asks of the requests that its transaction claims.
type claims interface {
	// claim makes the claim, before the operation runs.
	claim(t *dbtx.Tx, h held) error
	// foreign reads what refused the claim, and reports whether that was made under other keys.
	foreign(ctx context.Context) bool
	// purged reports whether it was gone when it was read.
	purged() bool
	// passed reports whether another attempt may have it by now, though this one was committed: then
	// that it is not there proves nothing.
	passed(ctx context.Context) bool
	// keep gives the claims of a transaction that was committed to c.
	keep(c *canary, t *dbtx.Tx)
	// outrun returns the error of the last attempt, which a cluster has rolled back in favour of
	// a transaction on another node: at its COMMIT, or before.
	outrun(ctx context.Context, t *dbtx.Tx, h held, err error, atCommit bool) error
}

// noClaims are the claims of an operation that makes none.
type noClaims struct{}

func (noClaims) claim(*dbtx.Tx, held) error   { return nil }
func (noClaims) keep(*canary, *dbtx.Tx)       {}
func (noClaims) foreign(context.Context) bool { return false }
func (noClaims) purged() bool                 { return false }
func (noClaims) passed(context.Context) bool  { return false }

func (noClaims) outrun(_ context.Context, _ *dbtx.Tx, _ held, err error, _ bool) error { return err }

// ending is how an attempt ended. It has no outcome if somebody's code panicked before COMMIT.
type ending struct {
	err     error
	outcome notify.Outcome
	finding *finding // about the weightiest conflict, nil if there was none
}

// overtaken reports whether an attempt was refused because another caller had changed a row
// that the attempt had read before, and nothing shows that a lock failed. The next attempt
// reads what that caller wrote. A version that the caller brought is as old then.
func (e ending) overtaken() bool {
	f := e.finding
	if f == nil || f.verdict.failure() || e.outcome != notify.OutcomeRefused || brought(e.err) {
		return false
	}
	conflict, v := f.endedWith(e.err)
	return conflict != nil && conflict.Evidence.Changed && !onClaim(conflict) && (v == overtaken || v == stale)
}

// keep keeps what was found about an attempt that is made again. The next one must read the
// rows of the keys in question anew, or it would meet the same change.
func (s *series) keep(f *finding) {
	for _, f := range f.all() {
		if f.conflict.Evidence.Changed {
			s.memory.Forget(f.conflict.Key)
		}
		if f.verdict == overtaken {
			s.earlier = append(s.earlier, f)
		}
	}
}

// explain adds the row to an event about a lock if an earlier attempt was overtaken under
// that lock. If the lock was lost and nothing was committed, the event is an overlap, as it
// would have been at the conflict.
func (s *series) explain(ev notify.Event) notify.Event {
	i := slices.IndexFunc(s.earlier, func(f *finding) bool { return f.key == ev.Key })
	if i < 0 {
		return ev
	}
	whole := ev
	s.earlier[i].describe(&whole)
	ev.Table, ev.Index, ev.Versions = whole.Table, whole.Index, whole.Versions
	if ev.Outcome == notify.OutcomeRefused || ev.Outcome == notify.OutcomeRolledBack {
		ev.Verdict, ev.Outcome, ev.HolderAtConflict = notify.VerdictOverlap, notify.OutcomeRefused, notify.HolderNone
	}
	return ev
}
