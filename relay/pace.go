package relay

import (
	"slices"
	"time"

	"github.com/belaygo/belay/internal/message"
)

// A read of a lane goes through its rows from the lowest id on, also through those of parked keys, and a
// dead letter may have very many followers. So a lane that is slow to read is read by itself, and with
// pauses in proportion. If a read of several lanes is slow, each of them is read by itself once. If none
// of these reads is slow, the database is, and reads together may take longer from then on.
//
// Reads cannot begin behind rows that were seen: which of their keys have waited meanwhile, and which
// commits with lower ids have come since, would decide what overtakes what.
type pace struct {
	lanes     [message.Lanes]lanePace
	suspected time.Duration // how long the read took that made lanes suspect; 0 = none did
	tolerated time.Duration // how long a read of several lanes may take, if more than the limit
}

type lanePace struct {
	kind paceKind
	next time.Time // when a slow lane is read again
}

type paceKind int

const (
	fast    paceKind = iota
	suspect          // to be read by itself at once
	slow
)

// slowPause is how many times as long as a slow read the pause behind it is.
const slowPause = 5

// due divides lanes into those to read together, and others to read by themselves, the longest due
// first.
func (p *pace) due(lanes []int) (together, alone []int) {
	if p.suspected > 0 && p.count(lanes, suspect) == 0 {
		if p.count(lanes, slow) == 0 {
			p.tolerated = 2 * p.suspected
		}
		p.suspected = 0
	}
	now := time.Now()
	for _, n := range lanes {
		switch l := p.lanes[n]; {
		case l.kind == fast:
			together = append(together, n)
		case !now.Before(l.next):
			alone = append(alone, n)
		}
	}
	slices.SortFunc(alone, func(a, b int) int { return p.lanes[a].next.Compare(p.lanes[b].next) })
	return together, alone
}

// record notes how long a read of lanes took.
func (p *pace) record(lanes []int, d, limit time.Duration) {
	switch l := &p.lanes[lanes[0]]; {
	case l.kind == fast && d > max(limit, p.tolerated):
		p.suspected = d
		for _, n := range lanes {
			p.lanes[n] = lanePace{kind: suspect}
		}
	case l.kind == fast:
	case d <= limit:
		*l = lanePace{}
	default: // the pauses of several together leave the database time, too
		l.kind = slow
		l.next = time.Now().Add(slowPause * d * time.Duration(p.count(allLanes, slow)))
	}
}

func (p *pace) count(lanes []int, kind paceKind) (n int) {
	for _, lane := range lanes {
		if p.lanes[lane].kind == kind {
			n++
		}
	}
	return n
}

var allLanes = func() (all []int) {
	for n := range message.Lanes {
		all = append(all, n)
	}
	return all
}()
