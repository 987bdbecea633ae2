package guard

import (
	"context"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/notify"
)

const (
	// undecidedPause is the time between two looks for requests that became undecided.
	undecidedPause = time.Minute
	// undecidedAtOnce bounds the requests that one look finds beside those that are reported.
	undecidedAtOnce = 1000
	// undecidedKnown bounds the requests that a Guard remembers to have reported.
	undecidedKnown = 10_000
)

// undecided reports requests of Call that are undecided: those that a repeat meets, and, with
// Config.Calls, those that nobody repeats. An event's id follows from the request, so that it is one
// event, though each process reports it.
type undecided struct {
	reporter *reporter
	running  *running
	halt     context.Context // ends at Close

	mu       sync.Mutex
	reported map[string]bool // ids of events
}

func newUndecided(halt context.Context, db *gorm.DB, r *reporter, running *running) *undecided {
	u := &undecided{reporter: r, running: running, halt: halt, reported: make(map[string]bool)}
	if r.cfg.Calls && running.enter() {
		go u.watch(db, undecidedPause)
	}
	return u
}

// watch looks until the Guard is closed.
func (u *undecided) watch(db *gorm.DB, pause time.Duration) {
	defer u.running.leave()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		err := background.Do(u.reporter.cfg.Logger, "look for undecided calls", func() error { return u.look(db) })
		if err != nil && u.halt.Err() == nil {
			u.reporter.cfg.Logger.Warn("look for undecided calls", "error", err)
		}
		select {
		case <-ticker.C:
		case <-u.halt.Done():
			return
		}
	}
}

func (u *undecided) look(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(u.halt, u.reporter.cfg.EndTimeout)
	defer cancel()
	d, _ := sqldb.Of(db.Name())
	rows, err := pending.Undecided(ctx, sqldb.New(pool, d), min(u.known()+undecidedAtOnce, undecidedKnown))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if u.halt.Err() != nil { // the Publisher may take long, and Close waits
			break
		}
		u.report(u.halt, row)
	}
	return nil
}

// report publishes the event of a request, unless this Guard has. An event that could not be handed over is
// published by the next look, or repeat.
func (u *undecided) report(ctx context.Context, row pending.Listed) {
	id := undecidedID(u.reporter.cfg.Service, row)
	if !u.first(id) {
		return
	}
	handed := false
	defer func() { // the Publisher may have panicked
		if !handed {
			u.forget(id)
		}
	}()
	ev := u.reporter.event(ctx, notify.VerdictUndecided, notify.OutcomeUnknown, row.Key())
	ev.ID = id
	ev.Call = &notify.UndecidedCall{ID: row.ID(), Operation: row.Operation, Since: row.Since, Until: row.Last, Tries: row.Tries}
	handed = u.reporter.handOver(ctx, ev)
}

func (u *undecided) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.reported, id)
}

// known returns how many requests are reported.
func (u *undecided) known() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.reported)
}

// first notes an event, and reports whether it was not known.
func (u *undecided) first(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reported[id] {
		return false
	}
	if len(u.reported) >= undecidedKnown {
		clear(u.reported)
	}
	u.reported[id] = true
	return true
}

// undecidedSpace is the name space of the ids of events about undecided requests.
var undecidedSpace = uuid.MustParse("b1a3c6de-5d0e-4f0b-9d53-0d8a6f0f7c42")

// undecidedID returns the id of a request's event. A request that is reserved anew has another time.
func undecidedID(service string, row pending.Listed) string {
	name := service + "\x00" + hex.EncodeToString(row.Request) + "\x00" + strconv.FormatInt(row.Since.UnixMilli(), 10)
	return uuid.NewSHA1(undecidedSpace, []byte(name)).String()
}
