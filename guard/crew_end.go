package guard

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/notify"
)

// end ends the call of a crew after its last attempt. It reports whether the leader is to
// run alone.
func (k *crew) end() (alone bool) {
	e := k.run.series.last
	apart := k.apart(e)
	met, own := k.met(e)
	k.run.count = k.told(e, met, own)
	k.run.reporter.metrics.crewSize.Observe(float64(max(1, k.made)))
	err := k.run.finish(e)
	fail.Point("guard/crew-ended")
	failure, _ := errors.AsType[*InterceptionError](err)
	switch {
	case apart, k.inserts && e.finding != nil && failure == nil: // it is of one of them
		k.scatter()
		return true
	case failure != nil && own:
		return k.intercept(err, met)
	case err == errNoChange: //nolint:errorlint // and no more went wrong
		err = nil // each has its own
	}
	alone = k.all[0].part.apart
	k.answer(err)
	return alone
}

// apart reports whether the members are to run alone: the database has refused the
// transaction, perhaps for what one of them has written, or has broken it off.
func (k *crew) apart(e ending) bool {
	everybodys := dbtx.Retryable(e.err) || errors.Is(e.err, gorm.ErrRecordNotFound) && !k.inserts || errors.Is(e.err, errNoChange)
	return e.err != nil && e.outcome == notify.OutcomeRolledBack && e.finding == nil &&
		k.run.series.tx != nil && k.run.keys.alive() == nil && !everybodys
}

// met returns the members whose own rows a conflict is about, without those whose requests
// were served under other keys. There are none left if their changes have panicked or were
// too late. own is false if it is about the row of all.
func (k *crew) met(e ending) (met []*member, own bool) {
	if e.finding == nil {
		return nil, false
	}
	calls := k.run.series.tx.Met()
	met = slices.DeleteFunc(k.those(calls), func(m *member) bool { return m.serves.foreign() })
	return met, len(calls) > 0 || e.finding.conflict.Kind == dbguard.Duplicate
}

// foreign reports whether all requests that a conflict is about were served under other keys.
func (k *crew) foreign(ctx context.Context) bool {
	met := k.those(k.run.series.tx.Met())
	all := len(met) > 0
	for _, m := range met {
		all = m.serves.find(ctx) && all
	}
	return all
}

// those returns the members that the transaction knows by numbers, without those who are
// gone.
func (k *crew) those(calls []int) (members []*member) {
	for _, n := range calls {
		if m := k.asked[n-1]; slices.Contains(k.all, m) {
			members = append(members, m)
		}
	}
	return members
}

// told returns for how many calls an event about the crew stands.
func (k *crew) told(e ending, met []*member, own bool) int {
	switch {
	case own:
		return max(1, len(met))
	case e.outcome == notify.OutcomeCommitted:
		return k.made
	case k.all[0].part.apart:
		return len(k.all) - 1
	}
	return len(k.all)
}

// intercept answers those whose rows another caller has written, too. The others run alone.
// It reports whether the leader does.
func (k *crew) intercept(err error, met []*member) (alone bool) {
	leads := k.all[0]
	for _, m := range met {
		k.conclude(m, leads, err)
	}
	k.all = slices.DeleteFunc(k.all, func(m *member) bool { return m != leads && slices.Contains(met, m) })
	k.scatter()
	return !slices.Contains(met, leads)
}

// answer tells each member what became of its change. An error is everybody's: what a
// change that failed had seen of the others' was not committed.
func (k *crew) answer(err error) {
	all := k.all
	k.all = nil
	for _, m := range all {
		answer := err
		if err == nil {
			answer = m.part.own
		}
		k.conclude(m, all[0], answer)
	}
}

// scatter has the members that have no answer run alone, unless their changes are
// committed, or may be.
func (k *crew) scatter() {
	all := k.all
	k.all = nil
	for _, m := range all[min(1, len(all)):] {
		switch outcome := k.run.series.last.outcome; {
		case outcome == notify.OutcomeCommitted:
			m.signal(signal{next: turnDone, err: m.part.own})
		case outcome == notify.OutcomeUnknown, outcome == "" && k.saved:
			m.signal(signal{next: turnDone, err: errOrphaned})
		default:
			m.signal(signal{next: turnAlone})
		}
	}
}

// conclude ends the call of a member: it notes what that returns: the leader runs the crew, the others wait for it.
func (k *crew) conclude(m, leader *member, err error) {
	if m == leader {
		k.err = err
		return
	}
	m.signal(signal{next: turnDone, err: err})
}
