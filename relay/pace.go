package relay

import (
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

// due divides lanes into those to read together, and one to read by itself; -1 = none.
func (p *pace) due(lanes []int) (together []int, alone int) {
	alone = -1
	now := time.Now()
	for _, n := range lanes {
		switch {
		case !p[n].slow:
			together = append(together, n)
		case now.Before(p[n].next):
		case alone < 0 || p[n].next.Before(p[alone].next):
			alone = n
		}
	}
	return together, alone
}

// took notes how long a read of lanes took. If it was slow, each of them is read by itself once.
func (p *pace) took(lanes []int, d, limit time.Duration) {
	for _, n := range lanes {
		was := p[n].slow
		p[n].slow, p[n].next = d > limit, time.Time{}
		if was {
			p[n].next = time.Now().Add(slowPause * d)
		}
	}
}
