package switchlock

import "time"

// A State is what this process knows of the record.
type State struct {
	Record
	// Age is the time since the record is known to have been so. Locks are neither granted
	// nor renewed when it is longer than Record.Lease. It is 0 before the first read.
	Age time.Duration
	// Left is for how long this process still needs both engines.
	Left time.Duration
	// Err is why the last read failed.
	Err error
}

// State returns what this process knows of the record.
func (e *Engine) State() State {
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
