package relay

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/library"
	"github.com/belaygo/belay/notify"
)

const (
	// maxSingle is how many dead letters of one kind have an event each, of those that wait for
	// their publication together. The others share one event.
	maxSingle = 100
	// publishTimeout limits the publication of one event.
	publishTimeout = 10 * time.Second
)

// A reporter publishes an event for each message that became a dead letter, in a goroutine of its own:
// a publisher that is slow holds up no message. What it has not published when the process dies, or
// soon after Close, is lost; the heartbeats still count these messages.
type reporter struct {
	cfg  Config
	stop context.CancelFunc
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	waiting map[kind][]letters
	closed  bool
}

// A kind is that of dead letters that may share an event.
type kind struct {
	topic string
	state state
}

// letters is a dead letter, and the number of those that it stands for.
type letters struct {
	failure
	count int
	at    time.Time
}

// newReporter starts a reporter, nil if there is no publisher.
func newReporter(cfg Config) *reporter {
	if cfg.Publisher == nil {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &reporter{cfg: cfg, stop: stop, wake: make(chan struct{}, 1), done: make(chan struct{}), waiting: make(map[kind][]letters)}
	go r.run(ctx)
	return r
}

// add reports a message that is parked as a dead letter.
func (r *reporter) add(f failure) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := kind{f.msg.Topic, f.dead}
	if all := r.waiting[of]; len(all) > maxSingle {
		all[maxSingle].count++
	} else {
		r.waiting[of] = append(all, letters{f, 1, time.Now()})
	}
	r.signal()
}

func (r *reporter) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close publishes the events that are left, and ends the reporter. It waits for that until ctx ends, but
// no longer than the limit, and does not wait for a publisher that ignores its context. It may be called
// again.
func (r *reporter) close(ctx context.Context) {
	if r == nil {
		return
	}
	defer r.stop()
	r.mu.Lock()
	r.closed = true
	r.signal()
	r.mu.Unlock()
	select {
	case <-r.done:
		return
	case <-ctx.Done():
	case <-time.After(r.cfg.limits.report):
	}
	r.stop()
	select {
	case <-r.done:
	case <-time.After(callEnd):
	}
}

func (r *reporter) run(ctx context.Context) {
	defer close(r.done)
	for {
		select {
		case <-r.wake:
		case <-ctx.Done(): // what is left is logged
		}
		all, closed := r.take()
		for _, of := range all {
			for _, l := range of {
				r.publish(ctx, l)
			}
		}
		if closed || ctx.Err() != nil {
			return
		}
	}
}

func (r *reporter) take() (all map[kind][]letters, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, r.waiting = r.waiting, make(map[kind][]letters)
	return all, r.closed
}

func (r *reporter) publish(ctx context.Context, l letters) {
	ev := r.event(l)
	_ = background.Do(r.cfg.Logger, "report a dead letter", func() error {
		ctx, cancel := context.WithTimeout(ctx, publishTimeout)
		defer cancel()
		err := r.cfg.Publisher.Publish(ctx, ev)
		if err != nil {
			r.cfg.Logger.Error("publish event", "event", ev, "error", err)
		}
		return err
	})
}

// letterSpace is the name space of the ids of events about dead letters.
var letterSpace = uuid.MustParse("6f2c7a52-7b7d-4a5e-9a35-2f7f0b5c9d11")

// event returns the event of a dead letter. Its id follows from the message, so that two relays which
// park a message one after the other report it once. Retry gives a message another time.
func (r *reporter) event(l letters) notify.Event {
	name := r.cfg.Service + "\x00" + l.msg.ID + "\x00" + strconv.FormatInt(l.msg.Time.UnixMilli(), 10)
	return notify.Event{
		ID:       uuid.NewSHA1(letterSpace, []byte(name)).String(),
		Verdict:  notify.VerdictDeadLetter,
		Outcome:  notify.OutcomeCommitted,
		Service:  r.cfg.Service,
		Instance: r.cfg.Instance,
		Key:      l.msg.Key,
		CaughtAt: l.at,
		Count:    l.count,
		Library:  library.Version(),
		Message: &notify.DeadLetter{
			ID: l.msg.ID, Topic: l.msg.Topic, StoredAt: l.msg.Time, Attempts: l.tried(), Undecided: l.dead == undecided,
		},
	}
}
