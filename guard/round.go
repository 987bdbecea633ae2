package guard

import (
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
)

// turnTime is how long all changes of a crew may take. Whoever takes longer runs alone,
// and those behind it are in the next crew.
const turnTime = 10 * time.Millisecond

// A round is one attempt of a crew: the members make their changes one after the other,
// each on its own goroutine.
type round struct {
	leader *member
	fold   *folded
	tx     *dbtx.Tx
	crew   *crew

	mu    sync.Mutex
	all   []*member
	next  int           // whose turn it is
	ended bool          // nobody but the leader may make a change any more
	over  chan struct{} // closed when ended
	stops []func()
}

// turns lets all make their changes, the leader first, for at most d. If the leader's
// code panics, the others are given back.
func (r *round) turns(d time.Duration) {
	timer := time.AfterFunc(d, r.end)
	defer timer.Stop()
	defer r.end()
	if !r.leader.apart {
		r.change(r.leader)
	}
	r.pass()
	<-r.over
}

// step makes m's change, and gives the turn to the next member.
func (r *round) step(m *member) (in bool, alone string) {
	defer r.pass() // also if m's code panics, or ends its goroutine
	return r.change(m)
}

// change makes m's change. in reports whether the change is one of the crew's; alone says
// why it is made alone, if it has to be.
func (r *round) change(m *member) (in bool, alone string) {
	if m.own = m.ctx.Err(); m.own != nil {
		return false, ""
	}
	adopt, undo, err := r.fold.try(m.ctx, m.steps)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended && m != r.leader {
		if err == nil {
			undo()
		}
		return false, combinedSlow
	}
	if err == errHides { //nolint:errorlint // of try itself
		m.apart = true
		return false, combinedAlone
	}
	if m.in, m.own = true, m.serves.own(err); err == nil {
		adopt(r.tx)
		r.stops = append(r.stops, r.crew.watch(m))
	}
	return true, ""
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
			m.turn <- turnChange
			return
		}
	}
	r.ended = true
	close(r.over)
}

// end ends the turns, and gives those back whose turn has not come.
func (r *round) end() {
	if late := r.cutOff(); len(late) > 0 {
		r.leader.lines.giveBack(r.leader.key, late)
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
	return slices.DeleteFunc(slices.Clone(r.all), func(m *member) bool { return !m.in && m != r.leader })
}
