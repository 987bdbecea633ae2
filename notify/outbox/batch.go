package outbox

import "github.com/belaygo/belay/notify"

// Bounds of one INSERT.
const (
	maxEntries = 500
	maxBytes   = 1 << 20
)

// A batch is the events that share an INSERT. It takes events while it waits
// for its turn: one INSERT of this process runs at a time, so that a burst, or a
// slow database, means larger batches and not more connections.
type batch struct {
	entries []*entry
	bytes   int
	full    chan struct{} // closed when nothing more fits
}

// An entry is one event that becomes a row.
type entry struct {
	row
	event notify.Event // for the log

	done chan struct{}
	err  error // why it is not stored, nor published; to be read after done
}

func (b *batch) add(ev notify.Event, body []byte) *entry {
	e := &entry{row: row{eventID: ev.ID, body: body}, event: ev, done: make(chan struct{})}
	b.entries = append(b.entries, e)
	b.bytes += len(body)
	return e
}
