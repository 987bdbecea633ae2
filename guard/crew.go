package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/notify"
)

// maxCrew is how many calls share a transaction at most.
const maxCrew = 128

// turnTime is how long all changes of a crew may take. Whoever takes longer runs alone,
// and those behind it are in the next crew.
const turnTime = 10 * time.Millisecond

// crews is what the crews of a Guard share.
type crews struct {
	lines    lines[*member]
	folding  folding
	turnTime time.Duration
}

// A crew is the calls that share a transaction. The first one leads: it has the lock, and
// runs the transaction.
type crew struct {
	noClaims           // the members claim
	crews    *crews    // of the Guard
	all      []*member // without those who have left, or have an answer
	run      *run      // of the leader
	err      error     // what the leader's call returns
	patience *patience // of the last attempt
	saved    bool      // the last attempt has saved the rows, and may have committed them

	inserts bool           // they insert rows, those of their requests included
	claimed []*claim.Claim // in the last attempt
	asked   []*member      // in the order in which the transaction knows them
	made    int            // changes in the last attempt
}

// errOrphaned is the answer of a crew that may have been committed, but whose leader has
// panicked.
var errOrphaned = fmt.Errorf("%w: the caller that ran the transaction has panicked", ErrUnknown)

// errNoChange has the transaction rolled back: all changes have failed.
var errNoChange = errors.New("guard: no change was made")

// attempt runs the transaction once, on a context that ends with the lock. It reports whether
// a caller who does not wait any longer has cut it short.
func (k *crew) attempt() (cut bool) {
	ctx, cancel := k.run.keys.within(k.run.ctx)
	defer cancel(nil)
	ctx, k.patience = newPatience(ctx)
	defer k.patience.end()
	k.saved, k.run.count = false, len(k.all)
	defer k.patience.watch(k.all[0].ctx)()
	e := k.run.series.attempt(newScope(ctx, &k.run.keys, nil), k.work)
	return e.outcome == notify.OutcomeRolledBack && e.finding == nil && impatient(ctx)
}

// dismiss answers those who do not wait any longer, before another attempt, and lets the
// others leave. The leader stays.
func (k *crew) dismiss() {
	leader := k.all[0]
	k.all = slices.DeleteFunc(k.all, func(m *member) bool {
		m.spare()
		if m == leader || m.ctx.Err() == nil || !m.use() {
			return false
		}
		m.signal(signal{next: turnDone, err: m.ctx.Err()})
		return true
	})
}

// handOver ends the call of a leader who does not wait any longer: another of the members
// leads the others.
func (k *crew) handOver() error {
	k.dismiss()
	e, leader := k.run.series.last, k.all[0]
	k.run.count, e.err = 1, leader.ctx.Err()
	err := k.run.finish(e)
	others := k.all[1:]
	k.all = nil
	k.giveBack(others)
	return err
}

// giveBack puts members whose turn did not come back into the line.
func (k *crew) giveBack(members []*member) {
	k.crews.lines.giveBack(k.run.turn.key, members)
}

// work is the operation of the crew's transaction.
func (k *crew) work(ctx context.Context, tx *gorm.DB) error {
	t := dbtx.FromContext(ctx)
	leader := k.all[0]
	f, err := foldAll(ctx, t, tx, &k.crews.folding, leader.steps)
	if err != nil {
		return err
	}
	fail.Point("guard/crew-loaded")
	if err := k.protect(t); err != nil {
		return err
	}
	r := newRound(k.all, f, t, k.patience, k.giveBack)
	defer r.close()
	defer func() { k.all = r.members() }() // the others are not ours any longer
	r.turns(k.crews.turnTime)
	if k.claimed, err = claimFor(t, r.members()); err != nil {
		return err
	}
	fail.Point("guard/crew-claimed")
	if k.made = f.n; k.made == 0 {
		return errNoChange
	}
	err = f.save(ctx, tx)
	k.saved = err == nil
	return err
}

// protect names the rows that the members insert. Those whose rows are there already, or
// are another member's, run alone, unless their requests are known: the database has to
// judge them.
func (k *crew) protect(t *dbtx.Tx) error {
	k.inserts = slices.ContainsFunc(k.all, func(m *member) bool { return m.serves != nil }) ||
		slices.ContainsFunc(k.all[0].steps, func(s foldable) bool { return s.inserts() != nil })
	if !k.inserts {
		return nil
	}
	k.asked = slices.DeleteFunc(slices.Clone(k.all), func(m *member) bool { return m != k.all[0] && !m.use() })
	rows := make([][]dbtx.NewRow, len(k.asked))
	for i, m := range k.asked {
		rows[i] = m.inserts()
		if i > 0 {
			defer k.patience.watch(m.ctx)()
		}
	}
	apart, err := t.ProtectEach(rows)
	if err != nil {
		return err
	}
	k.all = k.asked[:1:1]
	k.asked[0].part.apart = k.asked[0].part.apart || apart[0]
	for i, m := range k.asked[1:] {
		if apart[i+1] {
			m.signal(signal{next: turnApart})
		} else {
			k.all = append(k.all, m)
		}
	}
	return nil
}
