package zklock

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/background"
)

// A conn is one connection of a session. Its requests are answered in order, or the connection
// fails: no request is sent again on another connection.
type conn struct {
	server  string
	nc      socket
	in      *bufio.Reader
	session *session
	resumes bool          // the session had another connection before
	silence time.Duration // how long the server may send nothing before the connection fails
	event   func(on *conn, path string)
	saw     func(zxid int64)
	dead    chan struct{} // closed when it has failed

	mu    sync.Mutex
	err   error // why it has failed
	xid   int32
	calls map[int32]call
	pings []time.Time // when the pings were sent that are not answered yet
}

// A call is a request that was sent.
type call struct {
	sent time.Time
	then func(answer) // does not block
}

// An answer is what the server returned, or why there is no answer.
type answer struct {
	body []byte
	code code
	lost error
}

// send writes a request, and calls then with its answer later. If send returns an error, nothing
// was written, and then is not called.
func (c *conn) send(kind int32, body []byte, then func(answer)) error {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	c.xid = max(1, c.xid+1)
	c.calls[c.xid] = call{time.Now(), then}
	err := c.write(c.xid, kind, body)
	c.mu.Unlock()
	if err != nil {
		c.fail(err) // some of it may have been written, so then gets the error
	}
	return nil
}

// write sends a frame. The caller holds c.mu.
func (c *conn) write(xid, kind int32, body []byte) error {
	e := encoder{make([]byte, 0, 8+len(body))}
	e.int32(xid)
	e.int32(kind)
	e.b = append(e.b, body...)
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.silence))
	if _, err := c.nc.Write(e.frame()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// ping prolongs the session.
func (c *conn) ping() {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.pings = append(c.pings, time.Now())
	err := c.write(xidPing, opPing, nil)
	c.mu.Unlock()
	if err != nil {
		c.fail(err)
	}
}

// fail ends the connection, and the calls on it.
func (c *conn) fail(err error) {
	err = fmt.Errorf("%s: %w", c.server, err)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	_ = c.nc.Close()
	for _, call := range calls {
		call.then(answer{lost: err})
	}
	close(c.dead)
}

func (c *conn) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// receive handles answers until the connection fails.
func (c *conn) receive() {
	c.fail(background.Do(c.nc.logger, "zklock: receive answers", c.handle))
}

// handle is receive until an error.
func (c *conn) handle() error {
	for {
		frame, err := c.next()
		if err != nil {
			return err
		}
		d := decoder{b: frame}
		xid, zxid, code := d.int32(), d.int64(), code(d.int32())
		if d.err != nil {
			return d.err
		}
		if zxid > 0 {
			c.saw(zxid)
		}
		switch xid {
		case xidEvent:
			d.take(4 + 4) // type, state
			c.event(c, d.text())
		case xidPing:
			c.pinged()
		default:
			c.answered(xid, answer{body: d.b, code: code})
		}
	}
}

func (c *conn) next() ([]byte, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.silence))
	return readFrame(c.in)
}

// readFrame reads one frame: a length, and as many bytes, which it returns.
func readFrame(in io.Reader) ([]byte, error) {
	const most = 4 << 20
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > most {
		return nil, errors.New("read: the answer is longer than 4 MiB: is this a ZooKeeper server?")
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(in, frame); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return frame, nil
}

func (c *conn) pinged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pings) > 0 {
		c.session.heard(c.pings[0], time.Now())
		c.pings = c.pings[1:]
	}
}

func (c *conn) answered(xid int32, a answer) {
	c.mu.Lock()
	call, ok := c.calls[xid]
	delete(c.calls, xid)
	c.mu.Unlock()
	if !ok {
		c.fail(errOther)
		return
	}
	c.session.heard(call.sent, time.Now())
	call.then(a)
}
