package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/notify"
)

// maxCrew is how many calls share a transaction at most.
const maxCrew = 128

// A crew is the calls that share a transaction. The first one leads: it has the lock, and
// runs the transaction.
type crew struct {
	all   []*member // without those who have left, or have an answer
	call  *call     // of the leader
	cut   context.CancelCauseFunc
	saved bool // the last attempt has saved the row, and may have committed it
}

// errOrphaned is the answer of a crew that may have been committed, but whose leader has
// panicked.
var errOrphaned = fmt.Errorf("%w: the caller that ran the transaction has panicked", ErrUnknown)

// errNoChange has the transaction rolled back: all changes have failed.
var errNoChange = errors.New("guard: no change was made")

// errImpatient is the cause of an attempt's end: see round.watch.
var errImpatient = errors.New("guard: a caller who shares the transaction does not wait any longer")

// share runs a crew and returns the answer of its leader.
func share(leader *member, others []*member) error {
	k := &crew{all: append([]*member{leader}, others...), call: leader.call}
	defer k.scatter() // if somebody's code panics
	c := k.call
	ctx := c.ctx
	c.ctx = context.WithoutCancel(ctx) // the others', too
	c.op = k.work
	for {
		e, impatient := k.attempt()
		if impatient || c.again(e) {
			continue
		}
		apart := k.apart(e)
		err := c.finish(e)
		if apart {
			k.scatter()
			return leader.anew(ctx).alone()
		}
		if err == errNoChange { //nolint:errorlint // and no more went wrong
			err = nil // each has its own
		}
		k.answer(err)
		return leader.err
	}
}

// attempt runs the transaction once, on a context that ends with the lock.
func (k *crew) attempt() (e ending, impatient bool) {
	c := k.call
	ctx, cancel := c.within(c.ctx)
	defer cancel()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(context.Canceled)
	k.cut, k.saved, c.shared = cut, false, len(k.all)
	e = c.attempt(callContext{ctx, c})
	return e, e.outcome == notify.OutcomeRolledBack && e.finding == nil && errors.Is(context.Cause(ctx), errImpatient)
}

// work is the operation of the crew's transaction.
func (k *crew) work(ctx context.Context, tx *gorm.DB) error {
	t := dbtx.FromContext(ctx)
	f, err := k.all[0].change.fold(ctx, t, tx)
	if err != nil {
		return err
	}
	r := &round{leader: k.all[0], fold: f, tx: t, begun: time.Now(), cut: k.cut, all: slices.Clone(k.all), over: make(chan struct{})}
	for _, m := range k.all {
		m.round, m.in = r, false
	}
	defer r.close()
	defer func() { k.all = r.members() }() // the others are not ours any longer
	r.turns(k.call.guard.lines.turnTime)
	n := f.size()
	if n == 0 {
		return errNoChange
	}
	k.call.shared = n
	err = f.save(ctx, tx)
	k.saved = err == nil
	return err
}

// apart reports whether the members are to run alone: the database has refused the
// transaction, perhaps for what one of them has written, or has broken it off.
func (k *crew) apart(e ending) bool {
	everybodys := dbtx.Retryable(e.err) || errors.Is(e.err, gorm.ErrRecordNotFound) || errors.Is(e.err, errNoChange)
	return e.err != nil && e.outcome == notify.OutcomeRolledBack && e.finding == nil &&
		k.call.tx != nil && k.call.alive() == nil && !everybodys
}

// answer tells each member what became of its change. An error is everybody's: what a
// change that failed had seen of the others' was not committed.
func (k *crew) answer(err error) {
	all := k.all
	k.all = nil
	for i, m := range all {
		if err != nil {
			m.err = err
		}
		if i > 0 {
			m.turn <- turnDone
		}
	}
}

// scatter has the members that have no answer run alone, unless their changes are
// committed, or may be.
func (k *crew) scatter() {
	all := k.all
	k.all = nil
	for _, m := range all[min(1, len(all)):] {
		switch outcome := k.call.last.outcome; {
		case outcome == notify.OutcomeCommitted:
			m.turn <- turnDone
		case outcome == notify.OutcomeUnknown, outcome == "" && k.saved:
			m.err = errOrphaned
			m.turn <- turnDone
		default:
			m.turn <- turnAlone
		}
	}
}
