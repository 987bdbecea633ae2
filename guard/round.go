package guard

import (
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
)

// A round is one attempt of a crew: the members make their changes one after the other,
// each on its own goroutine.
type round struct {
	leader   *member
	fold     *folded
	tx       *dbtx.Tx
	patience *patience
	giveBack func([]*member) // those whose turn has not come

	mu    sync.Mutex
	all   []*member
	next  int           // whose turn it is
	ended bool          // nobody but the leader may make a change any more
	over  chan struct{} // closed when ended
	stops []func()
}

// newRound returns a round of members, the first of whom leads. It gives back those whose turn
// has not come.
func newRound(all []*member, f *folded, t *dbtx.Tx, p *patience, giveBack func([]*member)) *round {
	for _, m := range all {
		m.part.in = false
	}
	return &round{leader: all[0], fold: f, tx: t, patience: p, giveBack: giveBack, all: slices.Clone(all), over: make(chan struct{})}
}

// turns lets all make their changes, the leader first, for at most d. If the leader's
// code panics, the others are given back.
func (r *round) turns(d time.Duration) {
	timer := time.AfterFunc(d, r.end)
	defer timer.Stop()
	defer r.end()
	if !r.leader.part.apart {
		r.change(r.leader)
	}
	r.pass()
	<-r.over
}

// step makes m's change, and gives the turn to the next member.
func (r *round) step(m *member) tried {
	defer r.pass() // also if m's code panics, or ends its goroutine
	return r.change(m)
}

// change makes m's change.
func (r *round) change(m *member) tried {
	if m.part.own = m.ctx.Err(); m.part.own != nil {
		return tried{err: m.part.own}
	}
	adopt, undo, err := r.fold.try(m.ctx, m.steps)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended && m != r.leader {
		if err == nil {
			undo()
		}
		return tried{alone: combinedSlow}
	}
	if err == errHides { //nolint:errorlint // of try itself
		m.part.apart = true
		return tried{alone: combinedAlone}
	}
	if m.part.in, m.part.own = true, m.serves.own(err); err == nil {
		adopt(r.tx)
		r.stops = append(r.stops, r.patience.watch(m.ctx))
	}
	return tried{in: true}
}

// pass gives the turn to the next member.
func (r *round) pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	for r.next++; r.next < len(r.all); r.next++ {
		if m := r.all[r.next]; m.use() {
			m.signal(signal{next: turnChange, change: func() tried { return r.step(m) }})
			return
		}
	}
	r.ended = true
	close(r.over)
}

// end ends the turns, and gives those back whose turn has not come.
func (r *round) end() {
	if late := r.cutOff(); len(late) > 0 {
		r.giveBack(late)
	}
}

// cutOff ends the turns. It returns those whose turn has not come.
func (r *round) cutOff() (late []*member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	r.ended = true
	close(r.over)
	late = slices.Clone(r.all[r.next+1:])
	r.all = r.all[:r.next+1] // the last one is making its change, or has made it
	return late
}

// close stops watching the members.
func (r *round) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, stop := range r.stops {
		stop()
	}
}

// members returns the leader and those whose changes were made, or failed.
func (r *round) members() []*member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(m *member) bool { return !m.part.in && m != r.leader })
}
