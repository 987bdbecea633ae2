package alerts_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/testproc"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
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

// childReporter commits events to the outbox while the broker is away.
func childReporter(db *gorm.DB) error {
	broker, err := rabbitmq.New(os.Getenv("CHILD_AMQP"), rabbitmq.Config{})
	if err != nil {
		return err
	}
	o, err := outbox.New(db, outbox.Config{Relay: broker, RelayTimeout: time.Second})
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

// childMonitor stores one event, and stands before the acknowledgement.
func childMonitor(db *gorm.DB) error {
	c, err := intake.New(os.Getenv("CHILD_AMQP"), intake.Config{})
	if err != nil {
		return err
	}
	l := ledger{db}
	return c.Run(context.Background(), func(ctx context.Context, ev notify.Event, _ []byte) error {
		if err := l.store(ctx, ev); err != nil {
			return err
		}
		fmt.Println("stored")
		select {}
	})
}

// startChild starts a part in a process of its own and waits until it has said
// last. It returns the process and all lines before.
func startChild(t *testing.T, part, last, dsn, amqpURL string, events int) (p *testproc.Process, lines []string) {
	t.Helper()
	p = testproc.Start(t, part, testproc.Self(childEnv+"="+part, "CHILD_DSN="+dsn, "CHILD_AMQP="+amqpURL, "CHILD_EVENTS="+strconv.Itoa(events)))
	p.Await(last, func(line string) bool { return line == last })
	lines = p.Lines()
	return p, lines[:slices.Index(lines, last)]
}
