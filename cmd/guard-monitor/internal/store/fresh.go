package store

import (
	"sync"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// maxFresh bounds the bodies of the events that are kept decoded, in bytes. These events need some
// three times as much memory.
const maxFresh = 16 << 20

// fresh keeps the events that were stored moments ago, as they were decoded, until they are
// grouped: to read and decode one again costs almost as much as to store it. The file alone knows
// which events are in no incident. An event that is not kept is read from it.
type fresh struct {
	mu    sync.Mutex
	list  []freshEvent // in order of Seq
	bytes int          // of all bodies
}

type freshEvent struct {
	incident.Received
	bytes int // of its body
}

// add keeps the events of a batch that is on disk, as far as there is room: those that were stored
// first are grouped first.
func (f *fresh) add(batch []*addition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range batch {
		size := len(a.raw)
		if !a.added || !a.decoded || size > MaxBody || f.bytes+size > maxFresh {
			continue
		}
		r := incident.Received{Seq: a.seq, At: fromMicros(a.at.UnixMicro()), Sender: text.Clip(a.sender, MaxText), Event: a.event}
		f.list = append(f.list, freshEvent{r, size})
		f.bytes += size
	}
}

// last returns the last event that is kept, 0 if there is none.
func (f *fresh) last() (seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) == 0 {
		return 0
	}
	return f.list[len(f.list)-1].Seq
}

// drop forgets the events before seq.
func (f *fresh) drop(seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for n < len(f.list) && f.list[n].Seq < seq {
		f.bytes -= f.list[n].bytes
		n++
	}
	clear(f.list[:n]) // the array still has them
	if f.list = f.list[n:]; len(f.list) == 0 {
		f.list = nil
	}
}

// find returns the first events of seqs, which are in order, as far as all are kept.
func (f *fresh) find(seqs []int64) (list []incident.Received) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, seq := range seqs {
		for n < len(f.list) && f.list[n].Seq < seq {
			n++
		}
		if n == len(f.list) || f.list[n].Seq != seq {
			break
		}
		list = append(list, f.list[n].Received)
	}
	return list
}
