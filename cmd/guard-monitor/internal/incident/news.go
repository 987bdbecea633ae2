package incident

import "github.com/belaygo/belay/notify"

// news is what may explain earlier events otherwise.
type news struct {
	all      bool            // whatever came before this Tracker
	clusters map[string]bool // something happened to a Redis
	services map[string]bool // an instance of a service works without the lock, or no longer does
	keys     map[string]bool // a caller that lost the lock on a key may have written all the same
}

func newNews() news {
	return news{clusters: make(map[string]bool), services: make(map[string]bool), keys: make(map[string]bool)}
}

func (n news) any() bool {
	return n.all || len(n.clusters)+len(n.services)+len(n.keys) > 0
}

// hear notes an event.
func (n news) hear(ev notify.Event) {
	switch ev.Verdict {
	case notify.VerdictDegraded:
		n.services[ev.Service] = true
	case notify.VerdictUnknownCommit:
		n.wrote(ev)
	case notify.VerdictLost:
		if ev.Outcome == notify.OutcomeCommitted || ev.Outcome == notify.OutcomeUnknown {
			n.wrote(ev)
		}
	case notify.VerdictOverlap, notify.VerdictUnavailable, notify.VerdictCommitLost, notify.VerdictDeadLetter,
		notify.VerdictUndecided:
	}
}

// wrote notes the keys of an operation that may have written without their locks.
func (n news) wrote(ev notify.Event) {
	n.keys[ev.Key] = true
	for _, key := range ev.Keys {
		n.keys[key] = true
	}
}

// concern reports whether an event, whose lock is kept on a cluster if that is
// watched, may be explained otherwise now.
func (n news) concern(ev notify.Event, cluster string) bool {
	return n.all || n.clusters[cluster] || intrudedUpon(ev) && (n.keys[ev.Key] || n.services[ev.Service])
}
