package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// shownTables is how many tables of messages the overview lists; GET messages has all.
const shownTables = 20

// longWait is the age of a message that is shown as a fault.
const longWait = 5 * time.Minute

// maxCounted is the number at which a count ends: see relay.Count.
const maxCounted = 10_000

// sentMessages counts the messages that wait in a table.
type sentMessages struct {
	incident.Messages
	Stale bool `json:"stale"` // no recent heartbeat counts them
}

// Late reports whether messages wait for longer than they do when all is well.
func (m sentMessages) Late() bool { return m.Oldest >= longWait }

// Shown is a number as people read it: 10000+ stands for more.
func (m sentMessages) Shown(n int) string { return shown(n) }

func shown(n int) string {
	if n >= maxCounted {
		return strconv.Itoa(n) + "+"
	}
	return strconv.Itoa(n)
}

// urgency orders tables.
func (m sentMessages) urgency() int {
	n := 0
	for bit, bad := range []bool{m.Parked > 0, m.Late(), m.Dead > 0, m.Undecided > 0} {
		if bad {
			n |= 1 << bit
		}
	}
	return n
}

// findMessages finds the tables in which messages wait.
func (h *Handler) findMessages(ctx context.Context, d *overviewData, now time.Time) error {
	all, err := h.messages(ctx, now)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b sentMessages) int { return cmp.Compare(b.urgency(), a.urgency()) })
	d.Tables, d.Sent = len(all), all[:min(len(all), shownTables)]
	return nil
}

func (h *Handler) messages(ctx context.Context, now time.Time) ([]sentMessages, error) {
	list, err := h.cfg.Store.Messages(ctx)
	if err != nil {
		return nil, err
	}
	return convert(incident.ByTable(list), func(m incident.Messages) sentMessages { return sentMessages{m, m.Stale(now)} }), nil
}
