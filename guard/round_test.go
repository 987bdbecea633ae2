package guard

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
)

// ledger is a fold that notes who has changed it, and whose change was undone.
type ledger struct {
	fold
	made, undone []string
}

// entry is a step that ledger makes.
type entry struct {
	foldable
	who  string
	make func() error
}

func (l *ledger) try(_ context.Context, s step) (adopt func(*dbtx.Tx), undo func(), err error) {
	e := s.(entry)
	if e.make != nil {
		if err := e.make(); err != nil {
			return nil, nil, err
		}
	}
	return func(*dbtx.Tx) { l.made = append(l.made, e.who) }, func() { l.undone = append(l.undone, e.who) }, nil
}

// aboard returns a member with one step.
func aboard(t *testing.T, who string, change func() error) *member {
	return &member{waiter: newWaiter(t.Context(), "k", nil, time.Now().Add(time.Hour)), steps: []foldable{entry{who: who, make: change}}}
}

// playRound runs a round of at most d for its changes. It returns what became of those who
// follow the leader, and those who were given back.
func playRound(t *testing.T, d time.Duration, all ...*member) (l *ledger, r *round, became []tried, late []*member) {
	l = new(ledger)
	ctx, p := newPatience(t.Context())
	defer p.end()
	r = newRound(all, &folded{steps: []fold{l}}, nil, p, func(back []*member) { late = back })
	became = make([]tried, len(all))
	for i, m := range all[1:] {
		go func() {
			select {
			case s := <-m.signals:
				became[i+1] = s.change()
			case <-ctx.Done():
			}
		}()
	}
	r.turns(d)
	r.close()
	p.end()
	synctest.Wait()
	return l, r, became, late
}

// TestRound: the members make their changes one after the other, the leader first, and one that
// fails is in the round without its change.
func TestRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		a, b, c := aboard(t, "a", nil), aboard(t, "b", func() error { return failed }), aboard(t, "c", nil)
		left := aboard(t, "left", nil)
		left.leave()
		l, r, became, late := playRound(t, time.Second, a, b, left, c)
		if !slices.Equal(l.made, []string{"a", "c"}) || l.undone != nil || late != nil {
			t.Errorf("%v made their changes, %v undid them, %v were given back", l.made, l.undone, late)
		}
		if !slices.Equal(r.members(), []*member{a, b, c}) || !became[1].in || !errors.Is(b.part.own, failed) || !became[3].in {
			t.Errorf("the members are %v, with %+v", r.members(), became)
		}
	})
}

// TestRoundEnds: when the time is over, the change that runs is made alone, and those behind it
// are given back.
func TestRoundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, c, goOn := aboard(t, "a", nil), aboard(t, "c", nil), make(chan struct{})
		slow := aboard(t, "slow", func() error {
			<-goOn
			return nil
		})
		l, r, _, late := playRound(t, time.Second, a, slow, c)
		if !slices.Equal(r.members(), []*member{a}) || !slices.Equal(late, []*member{c}) {
			t.Errorf("the members are %v, %v were given back", r.members(), late)
		}
		close(goOn)
		synctest.Wait()
		if !slices.Equal(l.made, []string{"a"}) || !slices.Equal(l.undone, []string{"slow"}) {
			t.Errorf("%v made their changes, %v undid them", l.made, l.undone)
		}
	})
}

// TestRoundHides: a change that hides the row is made alone.
func TestRoundHides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := aboard(t, "a", nil), aboard(t, "b", func() error { return errHides })
		_, r, became, _ := playRound(t, time.Second, a, b)
		if became[1].alone != combinedAlone || !b.part.apart || !slices.Equal(r.members(), []*member{a}) {
			t.Errorf("became %+v, the members are %v", became[1], r.members())
		}
	})
}
