package zklock

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// A fake is a server of one connection that answers as a test wants.
type fake struct {
	net.Conn
	in *bufio.Reader
}

// openFake returns an engine whose only server is what serve does with each connection after
// the handshake.
func openFake(t *testing.T, serve func(f *fake)) *engine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f := &fake{c, bufio.NewReader(c)}
			if f.shakeHands() {
				serve(f)
			}
			_ = c.Close()
		}
	}()
	e, err := New(Config{Servers: []string{l.Addr().String()}, SessionTimeout: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close(context.Background())
		_ = l.Close()
		<-done
	})
	return e.(*engine)
}

func (f *fake) shakeHands() bool {
	if _, err := readFrame(f.in); err != nil {
		return false
	}
	var e encoder
	e.int32(0)
	e.int32(40_000)
	e.int64(1)
	e.text("password")
	_, err := f.Write(e.frame())
	return err == nil
}

// next returns the next request that is no ping, which is answered.
func (f *fake) next() (xid, kind int32, err error) {
	for {
		frame, err := readFrame(f.in)
		if err != nil {
			return 0, 0, err
		}
		d := decoder{b: frame}
		xid, kind = d.int32(), d.int32()
		if kind != opPing {
			return xid, kind, d.err
		}
		f.answer(xidPing, 0, nil)
	}
}

func (f *fake) answer(xid int32, c code, body []byte) {
	var e encoder
	e.int32(xid)
	e.int64(1)
	e.int32(int32(c))
	e.b = append(e.b, body...)
	_, _ = f.Write(e.frame())
}

// taken is the answer to an acquire that was executed.
func taken() []byte {
	var e encoder
	for range 2 {
		e.multiHeader(opCreate, false)
		e.text("/created")
	}
	e.multiHeader(opSetData, false)
	e.b = append(e.b, make([]byte, 68)...)
	e.multiHeader(-1, true)
	return e.b
}

var mine = lockengine.Request{Key: "k", Owner: "me:1"}

// An error that the servers may have found after they had executed the request says nothing
// of that.
func TestUnknownErrorMayHaveTaken(t *testing.T) {
	for _, c := range []code{-1, -4, -5, -7, -999, 7} {
		e := openFake(t, func(f *fake) {
			for {
				xid, _, err := f.next()
				if err != nil {
					return
				}
				f.answer(xid, c, nil)
			}
		})
		if _, err := e.Acquire(t.Context(), mine, time.Second); !errors.Is(err, lockengine.ErrNoAnswer) {
			t.Errorf("code %d: %v", c, err)
		}
	}
}

// An answer to no request ends the connection, and so the call that waits for its own.
func TestAnswerToAnother(t *testing.T) {
	e := openFake(t, func(f *fake) {
		for {
			xid, _, err := f.next()
			if err != nil {
				return
			}
			f.answer(xid+1, 0, taken())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := e.Acquire(ctx, mine, time.Second)
	if !errors.Is(err, lockengine.ErrNoAnswer) || ctx.Err() != nil {
		t.Fatalf("Acquire: %v, and its context: %v", err, ctx.Err())
	}
	if !strings.Contains(err.Error(), e.cfg.Servers[0]) {
		t.Errorf("the error does not name the server: %v", err)
	}
}

// An acquire that is answered when Close has begun is no grant: the session may have been
// ended, and the lock with it.
func TestCloseDuringAcquire(t *testing.T) {
	sent, closing := make(chan struct{}), make(chan struct{})
	e := openFake(t, func(f *fake) {
		xid, _, err := f.next()
		if err != nil {
			return // another connection, before Close has ended the client
		}
		close(sent)
		_, kind, _ := f.next()
		if kind != opClose {
			t.Errorf("the request of kind %d is not that of Close", kind)
		}
		f.answer(xid, 0, taken())
		<-closing
	})
	acquired := make(chan error, 1)
	go func() {
		_, err := e.Acquire(t.Context(), mine, time.Second)
		acquired <- err
	}()
	<-sent
	closed := make(chan error, 1)
	go func() { closed <- e.Close(t.Context()) }()
	if err := <-acquired; !errors.Is(err, lockengine.ErrNoAnswer) {
		t.Errorf("Acquire: %v", err)
	}
	close(closing)
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// FuzzAnswers: whatever a server answers, it is no panic, and no more memory than the answer
// has.
func FuzzAnswers(f *testing.F) {
	f.Add(taken())
	f.Add([]byte{})
	f.Add(binary.BigEndian.AppendUint32(nil, 1<<31))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x92})
	f.Fuzz(func(t *testing.T, answer []byte) {
		results, err := multiResults(answer)
		if n := len(results); n > len(answer)/9+1 {
			t.Errorf("%d results of %d bytes, %v", n, len(answer), err)
		}
		failed(results)
		d := decoder{b: answer}
		if text := d.text(); len(text) > len(answer) {
			t.Errorf("a text of %d bytes from %d", len(text), len(answer))
		}
		d.stat()
		_, _ = readFrame(bytes.NewReader(answer))
	})
}
