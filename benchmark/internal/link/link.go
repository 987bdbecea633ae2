// Package link puts distance between this process and servers that run beside it: what
// one side sends reaches the other later. It is for Linux.
package link

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Link is a network with one delay. All its packets pass one goroutine, in the order in
// which they were sent.
type Link struct {
	delay   time.Duration // of one direction
	packets chan packet
	carry   sync.WaitGroup // one for each side of each connection
	ended   chan struct{}  // by Close
	gone    chan struct{}  // once nothing is delivered any more
	fd      int            // of clock
	clock   *os.File       // a timer of the kernel: those of an idle Go program are a millisecond late
}

type packet struct {
	due  time.Time
	to   net.Conn
	data []byte // nil: the sender has closed its side
}

// Open returns a Link whose round trips take delay longer than without it.
func Open(delay time.Duration) (*Link, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	l := &Link{
		delay: delay / 2, packets: make(chan packet, 1024), ended: make(chan struct{}), gone: make(chan struct{}),
		fd: fd, clock: os.NewFile(uintptr(fd), "timer"),
	}
	go l.deliver()
	return l, nil
}

// Close ends the Link when its connections are closed.
func (l *Link) Close(context.Context) error {
	l.carry.Wait()
	close(l.ended)
	<-l.gone
	return l.clock.Close()
}

// Dial connects to a server over the Link.
func (l *Link) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	server, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	client, far, err := pair()
	if err != nil {
		_ = server.Close()
		return nil, err
	}
	l.carry.Go(func() { l.send(far, server) })
	l.carry.Go(func() { l.send(server, far) })
	return client, nil
}

// pair returns two ends of one connection, which have deadlines as those of net have.
func pair() (a, b net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	near, far := os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
	defer near.Close()
	defer far.Close()
	if a, err = net.FileConn(near); err != nil {
		return nil, nil, err
	}
	if b, err = net.FileConn(far); err != nil {
		_ = a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// send sends what comes from one side, and at last that it has closed.
func (l *Link) send(from, to net.Conn) {
	for {
		data := make([]byte, 4096)
		n, err := from.Read(data)
		p := packet{due: time.Now().Add(l.delay), to: to, data: data[:n]}
		if err != nil {
			p.data = nil
		}
		select {
		case l.packets <- p:
		case <-l.ended: // a connection that was opened too late
			_ = errors.Join(from.Close(), to.Close())
			return
		}
		if err != nil {
			return
		}
	}
}

func (l *Link) deliver() {
	defer close(l.gone)
	for {
		select {
		case p := <-l.packets:
			l.sleep(time.Until(p.due))
			if p.data == nil {
				_ = p.to.Close()
			} else {
				_, _ = p.to.Write(p.data) // the sender learns of it when it reads
			}
		case <-l.ended:
			return
		}
	}
}

func (l *Link) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	if unix.TimerfdSettime(l.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil) == nil {
		_, _ = l.clock.Read(make([]byte, 8))
	}
}
