package relay

import (
	"slices"
	"time"

	"github.com/belaygo/belay/internal/message"
)

// A read of a lane goes through its rows from the lowest id on, also through those of parked keys, and a
// dead letter may have very many followers. So a lane that is slow to read is read by itself, and with
// pauses in proportion.
//
// Reads can't begin behind rows that were seen: which of their keys have waited meanwhile, and which
// commits with lower ids have come since, would decide what overtakes what.
type pace [message.Lanes]struct {
	slow bool
	next time.Time // when the lane is read again, if it is slow
}

// slowPause is how many times as long as a slow read the pause behind it is.
const slowPause = 5

// due divides lanes into those to read together, and slow ones whose turn has come, the longest due
// first.
func (p *pace) due(lanes []int) (together, alone []int) {
	now := time.Now()
	for _, n := range lanes {
		switch {
		case !p[n].slow:
			together = append(together, n)
		case !now.Before(p[n].next):
			alone = append(alone, n)
		}
	}
	slices.SortFunc(alone, func(a, b int) int { return p[a].next.Compare(p[b].next) })
	return together, alone
}

// record notes how long a read of lanes took. If it was slow, each of them is read by itself once. If many
// are slow, so is the database: the pauses grow with their number.
func (p *pace) record(lanes []int, d, limit time.Duration) {
	for _, n := range lanes {
		was := p[n].slow
		p[n].slow, p[n].next = d > limit, time.Time{}
		if was {
			p[n].next = time.Now().Add(slowPause * d * time.Duration(p.slow()))
		}
	}
}

// slow returns how many lanes are.
func (p *pace) slow() (n int) {
	for _, one := range p {
		if one.slow {
			n++
		}
	}
	return n
}
