package testdb

import (
	"net"
	"sync"
)

// A Delay is a COMMIT whose client is cut off before the server executes it.
type Delay struct {
	Retried <-chan struct{} // closed when the client connects again

	retry                   func()
	deliver, answered, open chan struct{}
}

// Delay cuts the client off at the next COMMIT, which reaches the server at
// Deliver. From the cut on, new connections wait for Open. So it is at a server
// that goes on with the COMMIT of a session that was killed.
func (k *Link) Delay() *Delay {
	retried := make(chan struct{})
	d := &Delay{
		Retried:  retried,
		retry:    sync.OnceFunc(func() { close(retried) }),
		deliver:  make(chan struct{}),
		answered: make(chan struct{}),
		open:     make(chan struct{}),
	}
	k.delay.Store(d)
	return d
}

// Deliver passes the COMMIT on and returns when the server has answered it.
func (d *Delay) Deliver() {
	close(d.deliver)
	<-d.answered
}

// Open lets new connections through.
func (d *Delay) Open() { close(d.open) }

// commit sends the packet at Deliver and waits for the answer, after which down
// is closed.
func (d *Delay) commit(ended <-chan struct{}, server net.Conn, packet []byte, down <-chan struct{}) {
	defer close(d.answered)
	select {
	case <-d.deliver:
	case <-ended:
		return
	}
	if _, err := server.Write(packet); err == nil {
		<-down
	}
}

// pass waits for Open. It reports whether that came before the end.
func (d *Delay) pass(ended <-chan struct{}) bool {
	d.retry()
	select {
	case <-d.open:
		return true
	case <-ended:
		return false
	}
}
