package outbox

import (
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/wait"
)

// A Switch is a process's knowledge of the record that names the engine of its locks, as
// in a switchlock.State. The zero Switch is that of a process which knows no record yet.
type Switch struct {
	Epoch    int64         // of the record
	From, To string        // the engine that kept the locks before, and the one that keeps them
	Settled  bool          // no process needs From any more
	By       string        // who made the switch
	Left     time.Duration // for how long this process still needs both engines
}

// news decides when a heart reports a switch. A switch may be over before the next
// heartbeat is due, so a change is sent between two. It belongs to the relay's goroutine.
type news struct {
	know   func() Switch // nil without a switch
	logger *slog.Logger
	poll   time.Duration // the least time between two heartbeats for the sake of news
	told   heartbeat.Switch
	after  time.Time    // the earliest time of the next
	pause  wait.Backoff // after one that failed
}

func newNews(cfg Config) *news {
	poll := cfg.limits.pollInterval
	return &news{know: cfg.Switch, logger: cfg.Logger, poll: poll, pause: wait.Backoff{Min: poll, Max: maxPause}}
}

// rest returns how long it is until there may be news.
func (n *news) rest() time.Duration {
	if n.know == nil {
		return time.Hour
	}
	return n.poll
}

// look returns the present Switch. If that fails, it returns the zero Switch, because
// without a heartbeat the process would seem dead.
func (n *news) look() heartbeat.Switch {
	if n.know == nil {
		return heartbeat.Switch{}
	}
	var s heartbeat.Switch
	err := background.Do(n.logger, "look at the switch", func() error {
		s = heartbeat.Switch(n.know())
		return s.Validate()
	})
	if err != nil {
		return heartbeat.Switch{}
	}
	return s
}

// due reports whether the known record differs from the last one sent, and may be sent.
func (n *news) due(now time.Time, known heartbeat.Switch) bool {
	told := n.told
	told.Left = known.Left
	return known != told && !now.Before(n.after)
}

// sent notes the result of a heartbeat.
func (n *news) sent(known heartbeat.Switch, err error) {
	n.after = time.Now().Add(n.poll)
	if err != nil {
		n.after = n.after.Add(n.pause.Next())
		return
	}
	n.told = known
	n.pause.Reset()
}
