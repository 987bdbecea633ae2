package incident

import (
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// itself is the row that says what the event says.
func (f Facts) itself() Evidence {
	ev := f.Event
	r := Report{Verdict: ev.Verdict, Outcome: ev.Outcome, Service: text.Clip(ev.Service, maxName), Key: text.Clip(ev.Key, maxName)}
	switch ev.Verdict { // these have one row for a key, whenever its lock was granted
	case notify.VerdictUnknownCommit:
		r.Outcome = notify.OutcomeUnknown // as the service knew it, whatever was found out later
	case notify.VerdictCommitLost:
		r.Lost, r.Count = f.lost(), int64(ev.Count)
	case notify.VerdictDeadLetter:
		r.Message, r.Count = f.letter(), int64(ev.Count)
	case notify.VerdictUndecided:
		r.Call = f.call()
	case notify.VerdictDegraded, notify.VerdictUnavailable:
	default:
		r.Granted, r.Deadline, r.TTL = f.writable(ev.AcquiredAt), f.writable(ev.Deadline), ev.TTL
		r.Place = notify.Place{Node: text.Clip(ev.Place.Node, maxName), Slot: ev.Place.Slot, Entry: text.Clip(ev.Place.Entry, maxName)}
		r.Loss, r.Holder = ev.Loss, ev.HolderAtConflict
	}
	return Evidence{At: ev.CaughtAt, Node: text.Clip(ev.Instance, maxName), Kind: Reported, Report: &r}
}

// lost is what the event says of commits that were lost, nil if it says nothing.
func (f Facts) lost() *notify.LostCommits {
	if f.Event.Lost == nil {
		return nil
	}
	l := *f.Event.Lost
	l.FirstAt, l.LastAt = f.writable(l.FirstAt), f.writable(l.LastAt)
	l.Server, l.Now = text.Clip(l.Server, maxName), text.Clip(l.Now, maxName)
	return &l
}

// letter is what the event says of a dead letter, nil if it says nothing.
func (f Facts) letter() *notify.DeadLetter {
	if f.Event.Message == nil {
		return nil
	}
	m := *f.Event.Message
	m.StoredAt = f.writable(m.StoredAt)
	m.ID, m.Topic = text.Clip(m.ID, maxID), text.Clip(m.Topic, maxName)
	return &m
}

// rows are the evidence for a fault: what was seen, and what restricts it.
func (f Facts) rows(x fault) []Evidence {
	var rows []Evidence
	slices.SortStableFunc(x.rows, func(a, b watch.Entry) int { return a.At.Compare(b.At) })
	for _, e := range x.rows {
		rows = append(rows, Evidence{At: e.At, Node: e.Node, Kind: Seen, Entry: &e, For: f.before(e.At)})
	}
	for _, note := range x.notes {
		row := Evidence{At: x.at, Node: x.rows[0].Node, Kind: note}
		if note == NotTheMaster {
			row.Redis = f.Event.Place.Node
		}
		rows = append(rows, row)
	}
	return rows
}

// before is how long before the event something was seen, below 0 if after it.
func (f Facts) before(at time.Time) time.Duration {
	return f.Event.CaughtAt.Sub(at).Round(time.Millisecond)
}
