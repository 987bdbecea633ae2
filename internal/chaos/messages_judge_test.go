package chaos_test

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A verdict on messages: what was committed, and what came of it.
type sentVerdict struct {
	sent, effects                         int
	twice, lost, astray, outOfOrder, stay int
	byEnd                                 int // effects that came when the workers had ended
}

func (v sentVerdict) String() string {
	return fmt.Sprintf("messages: %d sent, %d effects, %d twice, %d lost, %d of nothing, %d out of order, %d have not left; %d applied after the workers' end",
		v.sent, v.effects, v.twice, v.lost, v.astray, v.outOfOrder, v.stay, v.byEnd)
}

// A sending is a message whose operation was committed, as the operation's row shows.
type sending struct {
	lane string
	n    int64
}

// sent returns by their numbers the messages that were committed.
func (r rows) sent() map[string]sending {
	all := make(map[string]sending)
	for _, p := range r.Parcels {
		all[p.No] = sending{keyOf(depots, p.Depot), p.N}
	}
	for _, p := range r.Receipts {
		if p.Sent {
			all[p.No] = sending{keyOf(stocks, p.Stock), p.N}
		}
	}
	for _, s := range r.Services {
		if s.Sent {
			all[serviceNo(s.Request)] = sending{keyOf(tallies, tallyOf(s.Request)), s.N}
		}
	}
	return all
}

// messages checks that each message that was committed has one effect, that nothing else has, that those of a
// key took effect in their order, and that none has stayed. ordered is false where nothing orders them: see package relay.
func (e *effects) messages(r rows, stay []left, ordered bool) (v sentVerdict) {
	sent, times := r.sent(), make(map[string]int)
	v.sent, v.stay = len(sent), len(stay)
	last := make(map[string]Arrival) // by lane
	for _, a := range r.Arrivals {   // in the order of their ids, which is that of their commits
		times[a.No]++
		if a.By == "end" {
			v.byEnd++
		}
		switch s, ok := sent[a.No]; {
		case !ok:
			v.astray++
			e.t.Errorf("a message has taken effect whose operation was %s: %+v", e.endOf(a.No), a)
			continue
		case times[a.No] > 1:
			v.twice++
			e.t.Errorf("a message has taken effect %d times: %+v", times[a.No], a)
			continue
		case s != (sending{a.Lane, a.N}):
			v.astray++
			e.t.Errorf("a message has taken effect that is not the one of its operation, %+v: %+v", s, a)
			continue
		}
		v.effects++
		if before := last[a.Lane]; ordered && a.N < before.N {
			v.outOfOrder++
			e.t.Errorf("a message has taken effect behind a later one of its key:\n%+v\n%+v", before, a)
		}
		last[a.Lane] = a
	}
	v.lost = e.lostMessages(sent, times, stay)
	return v
}

// lostMessages names the messages that have no effect, and those that have not left.
func (e *effects) lostMessages(sent map[string]sending, times map[string]int, stay []left) (lost int) {
	waits := make(map[string]bool)
	for _, l := range stay {
		var n note
		_ = json.Unmarshal([]byte(l.Body), &n)
		waits[n.No] = true
		if _, ok := sent[n.No]; !ok {
			e.t.Errorf("a message is stored whose operation was %s: %+v", e.endOf(n.No), l)
			continue
		}
		e.t.Errorf("a message has not left by the end: %+v", l)
	}
	for no, s := range sent {
		if times[no] == 0 && !waits[no] {
			lost++
			e.t.Errorf("a message that was committed has no effect: %s of %s, the %d.", no, s.lane, s.n)
		}
	}
	return lost
}

// endOf says how an operation ended that has left no row.
func (e *effects) endOf(no string) string {
	for _, c := range e.h.calls {
		if c.name == no {
			if c.rolledBack() {
				return "rolled back: " + c.result
			}
			return "not committed: " + c.result
		}
	}
	return "made by nobody"
}

// depots checks that each parcel and the count of its depot were written together, by calls that were done.
func (e *effects) depots(counts []Depot, parcels []Parcel) {
	made, total := make(map[string]bool), make(map[int64]int64)
	for _, p := range parcels {
		made[p.No] = true
		total[p.Depot]++
	}
	for _, d := range counts {
		e.counter(keyOf(depots, d.ID), d.N, int64(d.Version))
		if total[d.ID] != d.N {
			e.t.Errorf("one write of two: depot %d is %d after %d parcels", d.ID, d.N, total[d.ID])
		}
	}
	kinds := make(map[string]bool)
	for _, c := range e.h.calls {
		if strings.HasPrefix(c.key, string(depots)+":") {
			kinds[c.kind] = true
		}
	}
	for kind := range kinds {
		e.onceOf("parcel", kind, made)
	}
}
