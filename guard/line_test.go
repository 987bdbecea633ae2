package guard

import (
	"context"
	"slices"
	"testing"
	"time"
)

// standing returns a waiter for the key "k" that has time.
func standing(t *testing.T, shape any) *waiter {
	return newWaiter(t.Context(), "k", shape, time.Now().Add(time.Hour))
}

// wantSignal checks which signal a waiter has, if any.
func wantSignal(t *testing.T, w *waiter, want next) {
	t.Helper()
	select {
	case s := <-w.signals:
		if s.next != want {
			t.Errorf("the signal is %d, want %d", s.next, want)
		}
	default:
		t.Errorf("there is no signal, want %d", want)
	}
}

func wantNoSignal(t *testing.T, w *waiter) {
	t.Helper()
	select {
	case s := <-w.signals:
		t.Errorf("the signal is %d, want none", s.next)
	default:
	}
}

// TestLineHasOneLeader: the first caller leads, and the next one when that takes its crew.
func TestLineHasOneLeader(t *testing.T) {
	var l lines[*waiter]
	a, b, c := standing(t, 1), standing(t, 1), standing(t, 1)
	if !l.join(a) || l.join(b) || l.join(c) {
		t.Error("the first caller, and only that one, is to lead")
	}
	if crew := l.take(a, 1); !slices.Equal(crew, []*waiter{b}) {
		t.Errorf("the crew is %v, want the second caller", crew)
	}
	wantNoSignal(t, b)
	wantSignal(t, c, turnLead)
	if crew := l.take(c, 1); crew != nil || len(l.of) != 0 {
		t.Errorf("the crew is %v and there are %d lines, want none", crew, len(l.of))
	}
}

// TestLineTakesTheLike: others, and those who have left, are not in the crew.
func TestLineTakesTheLike(t *testing.T) {
	var l lines[*waiter]
	leader, other, like, left := standing(t, 1), standing(t, 2), standing(t, 1), standing(t, 1)
	for _, w := range []*waiter{leader, other, like, left} {
		l.join(w)
	}
	left.leave()
	if crew := l.take(leader, 9); !slices.Equal(crew, []*waiter{like}) {
		t.Errorf("the crew is %v, want one caller", crew)
	}
	wantSignal(t, other, turnLead)
	if other.leave() {
		t.Error("a caller that leads has left")
	}
}

// TestLineIsLeft: a caller can quit until its turn comes.
func TestLineIsLeft(t *testing.T) {
	var l lines[*waiter]
	leader, w := standing(t, 1), standing(t, 1)
	if l.quit(w) {
		t.Error("a caller has quit a line that is not there")
	}
	l.join(leader)
	l.join(w)
	if !l.quit(w) || l.quit(w) {
		t.Error("a caller quits its line once")
	}
	if crew := l.take(leader, 9); crew != nil {
		t.Errorf("the crew is %v, want none", crew)
	}
}

// TestLineGivesBack: callers whose turn did not come are before all others, and those who do not
// wait any longer run alone.
func TestLineGivesBack(t *testing.T) {
	var l lines[*waiter]
	leader, next, back := standing(t, 1), standing(t, 1), standing(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	impatient := newWaiter(ctx, "k", 1, time.Now().Add(time.Hour))
	late := newWaiter(t.Context(), "k", 1, time.Now())
	back.use()
	l.join(leader)
	l.join(next)
	l.giveBack("k", []*waiter{impatient, back, late})
	wantSignal(t, impatient, turnAlone)
	wantSignal(t, late, turnAlone)
	if crew := l.take(leader, 9); !slices.Equal(crew, []*waiter{back, next}) {
		t.Errorf("the crew is %v, want the caller that was given back first", crew)
	}
	l.giveBack("k", []*waiter{back}) // nobody leads any longer
	wantSignal(t, back, turnLead)
	l.take(back, 0)
	l.giveBack("k", nil)
	if len(l.of) != 0 {
		t.Errorf("there are %d lines, want none", len(l.of))
	}
}
