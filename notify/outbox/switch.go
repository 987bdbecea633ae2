package outbox

import (
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/wait"
)

// A Switch is what a process knows of the record that says which of several engines keeps
// its locks, as in a switchlock.State. The zero Switch says that it knows nothing yet.
type Switch struct {
	Epoch    int64         // of the record
	From, To string        // the engine that kept the locks before, and the one that keeps them
	Settled  bool          // no process needs From any more
	By       string        // who made the switch
	Left     time.Duration // for how long this process still needs both engines
}

// news is what a heart has to say of a switch. A switch may be over before the next
// heartbeat is due, so a change is sent between two. It belongs to the relay's goroutine.
type news struct {
	know  func() Switch // nil: there is none
	poll  time.Duration // the least time between two heartbeats for the sake of news
	told  heartbeat.Switch
	after time.Time    // the earliest time of the next
	pause wait.Backoff // after one that failed
}

func newNews(cfg Config) *news {
	poll := cfg.limits.pollInterval
	return &news{know: cfg.Switch, poll: poll, pause: wait.Backoff{Min: poll, Max: maxPause}}
}

// rest returns how long it is until there may be news.
func (n *news) rest() time.Duration {
	if n.know == nil {
		return time.Hour
	}
	return n.poll
}

// look returns what is known now. If that can't be, it returns the zero Switch: without a
// heartbeat the process would be taken for dead.
func (n *news) look() heartbeat.Switch {
	if n.know == nil {
		return heartbeat.Switch{}
	}
	s := heartbeat.Switch(n.know())
	if s.Validate() != nil {
		return heartbeat.Switch{}
	}
	return s
}

// due reports whether what is known is another record than was told, and may be sent.
func (n *news) due(now time.Time, known heartbeat.Switch) bool {
	told := n.told
	told.Left = known.Left
	return known != told && !now.Before(n.after)
}

// sent notes what came of a heartbeat.
func (n *news) sent(known heartbeat.Switch, err error) {
	n.after = time.Now().Add(n.poll)
	if err != nil {
		n.after = n.after.Add(n.pause.Next())
		return
	}
	n.told = known
	n.pause.Reset()
}
