package zklock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A client keeps one session, with one of the servers at a time. A request never waits in a
// client: without a connection it is not sent.
type client struct {
	cfg       Config
	event     func(on *conn, path string) // a watch has fired
	resumed   func(*conn)                 // the session is not new; the connection is not in use yet
	connected func(*conn)                 // watches of connections before it are gone
	expired   func(*session)

	ctx     context.Context // ends with close
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	conn    *conn         // nil = none
	down    error         // why no server could be reached, the last time that all were tried
	changed chan struct{} // closed when conn or down changes
	zxid    int64         // the latest that was seen: a server that is behind it is not used
}

func (c *client) start() {
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.changed = make(chan struct{})
	c.running.Go(c.run)
}

// run connects to one server after the other.
func (c *client) run() {
	s, failures := new(session), 0
	for next := rand.N(len(c.cfg.Servers)); c.ctx.Err() == nil; {
		conn, err := c.connect(c.cfg.Servers[next%len(c.cfg.Servers)], s)
		switch {
		case err == nil:
			failures = 0
			c.serve(conn)
			next++
		case errors.Is(err, errExpired):
			s.end()
			c.expired(s)
			s = new(session)
		default:
			failures++
			next++
			if failures%len(c.cfg.Servers) == 0 {
				c.forget()
				c.change(nil, err)
				c.pause(failures / len(c.cfg.Servers))
			}
		}
	}
}

// pause waits before the servers are tried again, for longer each time, up to a second.
func (c *client) pause(rounds int) {
	d := min(time.Second, 50*time.Millisecond<<min(rounds, 5))
	select {
	case <-time.After(d/2 + rand.N(d/2)):
	case <-c.ctx.Done():
	}
}

// patience returns how long a server may send nothing before the connection is closed.
func patience(timeout time.Duration) time.Duration { return min(3*time.Second, timeout/6) }

// connect opens a connection for the session. It begins the session if that is new.
func (c *client) connect(server string, s *session) (*conn, error) {
	sent, resumes := time.Now(), s.id != 0
	ctx, cancel := context.WithTimeout(c.ctx, 3*time.Second)
	defer cancel()
	nc, err := c.cfg.dial(ctx, server)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	in := bufio.NewReader(nc)
	timeout, err := c.handshake(nc, in, s)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("%s: %w", server, err)
	}
	s.connected(sent, timeout)
	return &conn{
		server: server, nc: nc, in: in, session: s, resumes: resumes, silence: patience(timeout),
		event: c.event, saw: c.saw, dead: make(chan struct{}), calls: make(map[int32]call),
	}, nil
}

// handshake begins the session, or continues it on this connection. It returns the session timeout
// that the server has granted.
func (c *client) handshake(nc socket, in *bufio.Reader, s *session) (time.Duration, error) {
	timeout := s.granted()
	if s.id == 0 {
		timeout = c.cfg.SessionTimeout
	}
	c.mu.Lock()
	zxid := c.zxid
	c.mu.Unlock()
	var e encoder
	e.int32(0) // version
	e.int64(zxid)
	e.int32(int32(timeout / time.Millisecond)) //nolint:gosec // New checks it
	e.int64(s.id)
	e.text(s.password)
	e.bool(false) // not on a server that is read-only
	if _, err := nc.Write(e.frame()); err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	frame, err := readFrame(in)
	if err != nil {
		return 0, err
	}
	d := decoder{b: frame}
	_, granted, id, password := d.int32(), d.int32(), d.int64(), d.text()
	switch {
	case d.err != nil:
		return 0, d.err
	case granted <= 0 && s.id != 0:
		return 0, errExpired
	case granted <= 0:
		return 0, errors.New("the server grants no session")
	}
	if s.id == 0 {
		s.id, s.password = id, password
	}
	return time.Duration(granted) * time.Millisecond, nil
}

// serve uses a connection until it fails.
func (c *client) serve(conn *conn) {
	c.running.Go(conn.receive)
	if conn.resumes {
		c.resumed(conn)
	}
	c.change(conn, nil)
	c.connected(conn)
	pings := time.NewTicker(min(time.Second, conn.session.granted()/pingPart))
	defer pings.Stop()
	for {
		select {
		case <-pings.C:
			conn.ping()
		case <-conn.dead:
			c.change(nil, nil)
			return
		case <-c.ctx.Done():
			conn.fail(errClosed)
		}
	}
}

// change sets the present connection, or the reason why there is none.
func (c *client) change(conn *conn, down error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.down = conn, down
	close(c.changed)
	c.changed = make(chan struct{})
}

// forget makes the client accept a server that is behind what it has seen. After a restore of a
// backup all servers are, and would reject the client. What such a server answers can make a caller
// wait for too long, but grants no lock: a majority decides on that.
func (c *client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zxid = 0
}

func (c *client) saw(zxid int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zxid = max(c.zxid, zxid)
}

// ready returns the present connection, or waits for one. It returns an error at once if none of the
// servers could be reached in the last round.
func (c *client) ready(ctx context.Context) (*conn, error) {
	for {
		c.mu.Lock()
		conn, down, changed := c.conn, c.down, c.changed
		c.mu.Unlock()
		switch {
		case c.ctx.Err() != nil:
			return nil, errClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case conn != nil:
			return conn, nil
		case down != nil:
			return nil, down
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-c.ctx.Done():
		}
	}
}

// lasting returns a connection of a session that lives for at least ttl from now. If the session was
// not used for a while, as in a process that stood still, a new connection prolongs it.
func (c *client) lasting(ctx context.Context, ttl time.Duration) (*conn, error) {
	for tries := 0; ; tries++ {
		conn, err := c.ready(ctx)
		if err != nil {
			return nil, err
		}
		s := conn.session
		if ttl > s.longestTTL() {
			return nil, &ttlError{ttl: ttl, session: s.granted(), wanted: c.cfg.SessionTimeout}
		}
		now := time.Now()
		if !s.lastsUntil(now).Before(now.Add(ttl)) {
			return conn, nil
		}
		conn.fail(errStale)
		if tries > 0 {
			return nil, errStale
		}
		c.left(conn)
	}
}

// left makes ready wait for another connection.
func (c *client) left(conn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn {
		c.conn = nil
	}
}

// close ends the session, if it keeps no locks, and the connection.
func (c *client) close(ctx context.Context, endSession bool) error {
	if endSession {
		c.endSession(ctx)
	}
	c.stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.running.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *client) endSession(ctx context.Context) {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn == nil {
		return
	}
	ended := make(chan struct{})
	if conn.send(opClose, nil, func(answer) { close(ended) }) != nil {
		return
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
