package redislock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// jobVar has the test binary do a job in a process of its own.
const jobVar = "BELAY_LOCK_JOB"

// A job is to take and release locks until standard input ends.
type job struct {
	Addrs   []string
	Keys    []string
	Workers int           // worker i uses Keys[i%len(Keys)]
	Hold    time.Duration // half as long to half as long again; 0 = until the lock is lost
	TTL     time.Duration
}

// A span is one hold, in nanoseconds of the host's monotonic clock, which all
// processes share.
type span struct {
	Key, Owner, Node string
	Token            int64
	Asked, Got       int64 // Acquire was called, and returned
	Believed         int64 // when Err was nil for the last time, 0 = never
	Deadline         int64 // of the lease, then
	Done, Freed      int64 // Release was called, and returned
	End              string
	Err              string // of Acquire; nothing else is set then
}

// How a hold ended.
const (
	released   = "released"
	lost       = "lost"
	unanswered = "unanswered"
)

func mono() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// work does a job and prints its spans.
func work(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	e, err := redislock.Open(options(j.Addrs...), redislock.Config{})
	if err != nil {
		return err
	}
	defer e.Close(context.Background())
	l, err := lock.New(e, lock.Config{TTL: j.TTL})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	out := &printer{enc: json.NewEncoder(os.Stdout)}
	var wg sync.WaitGroup
	for i := range j.Workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				out.print(j.span(ctx, l, j.Keys[i%len(j.Keys)]))
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	wg.Wait()
	end, cancel := context.WithTimeout(context.Background(), 2*limit)
	defer cancel()
	return l.Close(end)
}

// span takes a lock once.
func (j *job) span(ctx context.Context, l *lock.Locker, key string) span {
	s := span{Key: key, Asked: mono()}
	lease, err := l.Acquire(ctx, key)
	s.Got = mono()
	if err != nil {
		s.Err = err.Error()
		if ctx.Err() != nil {
			s.Err = ""
		}
		return s
	}
	s.Owner, s.Node, s.Token = lease.Grant().Owner, lease.Grant().Node, lease.Grant().Token
	for hold := j.Hold/2 + rand.N(j.Hold+1); ; {
		now := mono()
		if lease.Err() != nil {
			break
		}
		if j.Hold == 0 && s.Believed == 0 {
			fmt.Fprintln(os.Stdout, `{"Key":"held"}`)
		}
		left := time.Until(lease.Grant().Deadline)
		s.Believed, s.Deadline = now, mono()+int64(left)
		if ctx.Err() != nil || j.Hold > 0 && now-s.Got > int64(hold) {
			break
		}
		<-time.After(time.Millisecond)
	}
	s.Done = mono()
	switch err := lease.Release(context.Background()); {
	case err == nil:
		s.End = released
	case errors.Is(err, lock.ErrLost):
		s.End = lost
	default:
		s.End = unanswered
	}
	s.Freed = mono()
	return s
}

type printer struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (p *printer) print(s span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.enc.Encode(s)
}

// A child is a process that does a job.
type child struct {
	*exec.Cmd
	stdin io.Closer
	lines chan span // closed when it has printed all
}

func startChild(t *testing.T, j job) *child {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(os.Args[0]), lines: make(chan span, 1<<14)}
	c.Env = append(os.Environ(), jobVar+"="+string(text))
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin = stdin
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var s span
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				t.Errorf("a child printed %q", lines.Text())
				continue
			}
			c.lines <- s
		}
	}()
	t.Cleanup(func() {
		_ = c.stdin.Close()
		end := time.AfterFunc(3*limit, func() { _ = c.Process.Kill() })
		defer end.Stop()
		<-read
		if err := c.Wait(); err != nil {
			t.Errorf("a child ended with %v", err)
		}
	})
	return c
}

// finish ends the job and returns the spans that were not taken from lines yet.
func (c *child) finish() (spans []span) {
	_ = c.stdin.Close()
	for s := range c.lines {
		if s.Owner != "" || s.Err != "" {
			spans = append(spans, s)
		}
	}
	return spans
}
