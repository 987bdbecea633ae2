package notify

import (
	"encoding/json"
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
)

// event is an Event as its tags have it: without the methods of Event.
type event Event

// MarshalJSON returns the event as CloudEvents JSON. It refuses an event that
// Validate refuses. Bytes that are not UTF-8 become U+FFFD.
func (e Event) MarshalJSON() ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	data := event(e)
	data.AcquiredAt, data.Deadline, data.CaughtAt = e.AcquiredAt.UTC(), e.Deadline.UTC(), e.CaughtAt.UTC()
	data.TTL /= time.Millisecond
	data.Lost, data.Message, data.Call = e.Lost.inUTC(), e.Message.inUTC(), e.Call.inUTC()
	env := cloudevent.New(cloudevent.Event, e.ID, e.Service, e.Instance, e.CaughtAt, data)
	env.Subject = e.Key
	env.TraceParent, env.TraceState = cloudevent.CheckTrace(e.Trace.Parent, e.Trace.State)
	return json.Marshal(env)
}

// inUTC returns a copy with times in UTC; nil for nil.
func (l *LostCommits) inUTC() *LostCommits {
	if l == nil {
		return nil
	}
	c := *l
	c.FirstAt, c.LastAt = c.FirstAt.UTC(), c.LastAt.UTC()
	return &c
}

// inUTC returns a copy with its time in UTC; nil for nil.
func (d *DeadLetter) inUTC() *DeadLetter {
	if d == nil {
		return nil
	}
	c := *d
	c.StoredAt = c.StoredAt.UTC()
	return &c
}

// inUTC returns a copy with times in UTC; nil for nil.
func (u *UndecidedCall) inUTC() *UndecidedCall {
	if u == nil {
		return nil
	}
	c := *u
	c.Since, c.Until = c.Since.UTC(), c.Until.UTC()
	return &c
}

// UnmarshalJSON reads what MarshalJSON writes, from any peer: it ignores
// members that it does not know and refuses everything else that is not a
// valid event, leaving e as it was. Call it directly on bytes from outside:
// json.Unmarshal reports broken JSON with errors that do not match ErrInvalidEvent.
func (e *Event) UnmarshalJSON(b []byte) error {
	env, err := cloudevent.Open[event](b, cloudevent.Event)
	if err != nil {
		return err
	}
	read := Event(env.Data)
	read.ID = env.ID
	read.AcquiredAt, read.Deadline, read.CaughtAt = read.AcquiredAt.UTC(), read.Deadline.UTC(), read.CaughtAt.UTC()
	read.Lost, read.Message, read.Call = read.Lost.inUTC(), read.Message.inUTC(), read.Call.inUTC()
	read.Trace = Trace{Parent: env.TraceParent, State: env.TraceState}
	if read.TTL, err = cloudevent.Millis("ttl_ms", read.TTL); err != nil {
		return err
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*e = read
	return nil
}
