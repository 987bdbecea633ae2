package switchlock

import "time"

// A State is what this process knows of the record.
type State struct {
	Record
	// Age is the time since the last successful read of the record began. No lock is granted
	// or renewed when it is longer than Record.Lease. It is 0 before the first read.
	Age time.Duration
	// Left is how long this process still needs both engines. It is 0 if it needs one.
	Left time.Duration
	// Err is why the last read failed, or nil.
	Err error
}

// State returns the record, and how long this process may rely on it.
func (e *engine) State() State {
	e.mu.Lock()
	defer e.mu.Unlock()
	v, now := e.view, e.now()
	s := State{Record: v.known, Err: e.failed}
	if v.known.Epoch > 0 {
		s.Age = now - (v.fresh - v.known.Lease)
	}
	if v.crosses(now) {
		s.Left = v.cross - now
	}
	return s
}
