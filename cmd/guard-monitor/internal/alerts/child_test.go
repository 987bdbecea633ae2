package alerts_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// child is what the process does that a test kills. It says a line when it may
// be killed, and stands still then.
func child(part string) int {
	db, err := gorm.Open(mysql.Open(os.Getenv("CHILD_DSN")), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		switch part {
		case "reporter":
			err = childReporter(db)
		case "monitor":
			err = childMonitor(db)
		}
	}
	fmt.Fprintln(os.Stderr, part, "failed:", err)
	return 1
}

// childReporter commits events to the outbox while nobody takes them out.
func childReporter(db *gorm.DB) error {
	to, err := way(os.Getenv("CHILD_WAY")).publisher(os.Getenv("CHILD_TO"))
	if err != nil {
		return err
	}
	o, err := outbox.New(db, outbox.Config{Relay: to, RelayTimeout: time.Second})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(os.Getenv("CHILD_EVENTS"))
	if err != nil {
		return err
	}
	for range n {
		ev := newEvent()
		if err := o.Publish(context.Background(), ev); err != nil {
			return err
		}
		fmt.Println(ev.ID)
	}
	fmt.Println("committed")
	select {}
}

// What a monitor says: its address, if events are posted there, and where it stands.
const (
	listening = "listening on "
	received  = "received"
	stored    = "stored"
)

// childMonitor takes events, and stands at the first one: before it is stored, or before the
// monitor answers. Without a word to stand at, it goes on.
func childMonitor(db *gorm.DB) error {
	stands := os.Getenv("CHILD_STANDS")
	l := ledger{db}
	store := func(ctx context.Context, ev notify.Event) (bool, error) {
		if stands == received {
			fmt.Println(received)
			select {}
		}
		added, err := l.store(ctx, ev)
		if stands == stored && err == nil {
			fmt.Println(stored)
			select {}
		}
		return added, err
	}
	if way(os.Getenv("CHILD_WAY")) == overHTTP {
		return serveChild(store)
	}
	c, err := intake.New(os.Getenv("CHILD_TO"), intake.Config{})
	if err != nil {
		return err
	}
	return c.Run(context.Background(), func(ctx context.Context, ev notify.Event, _ []byte, _ string) error {
		_, err := store(ctx, ev)
		return err
	})
}

// monitor starts a monitor in a process of its own, to stand at a word. Over HTTP it leads the
// link there.
func (s *stage) monitor(stands string) *testproc.Process {
	s.t.Helper()
	p := s.child("monitor", s.amqp, "CHILD_STANDS="+stands)
	if s.way == overHTTP {
		line := p.Await("its address", func(line string) bool { return strings.HasPrefix(line, listening) })
		s.link.lead(strings.TrimPrefix(line, listening))
	}
	return p
}

// child starts a part in a process of its own.
func (s *stage) child(part, to string, env ...string) *testproc.Process {
	s.t.Helper()
	env = append(env, childEnv+"="+part, "CHILD_DSN="+s.dsn, "CHILD_WAY="+string(s.way), "CHILD_TO="+to)
	return testproc.Start(s.t, part, testproc.Self(env...))
}

// awaitLine waits until the process has said a line, and returns all lines before.
func awaitLine(p *testproc.Process, last string) (before []string) {
	p.Await(last, func(line string) bool { return line == last })
	lines := p.Lines()
	return lines[:slices.Index(lines, last)]
}
