//go:build failpoints

package failpoints_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// monitorRole is a guard-monitor without pages, that watches no Redis.
type monitorRole struct {
	AMQP  string
	Store string // path of its database
	Told  string // path of the file that stands for people
}

func (r *monitorRole) run(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	st, err := store.Open(ctx, r.Store)
	if err != nil {
		return err
	}
	mon, err := monitor.New(ctx, monitor.Config{Store: st, Logger: log})
	if err != nil {
		return err
	}
	consumer, err := intake.New(r.AMQP, intake.Config{Logger: log})
	if err != nil {
		return err
	}
	tracker := incident.NewTracker(incident.Config{Store: st, Every: 50 * time.Millisecond, Settle: -1, Logger: log})
	told, err := os.OpenFile(r.Told, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	dispatcher, err := dispatch.New(dispatch.Config{
		Store: st, Logger: log, ExternalURL: "http://monitor",
		Routes: []dispatch.Route{{To: people{told}, GroupBy: []string{"service"}, RepeatInterval: time.Hour, Resolved: true}},
	})
	if err != nil {
		return err
	}
	var parts sync.WaitGroup
	parts.Go(func() { _ = consumer.Run(ctx, mon.Ingest) })
	parts.Go(func() { _ = tracker.Run(ctx) })
	parts.Go(func() { _ = dispatcher.Run(ctx) })
	parts.Wait()
	return nil
}

// people are a file, with a line for each incident of a message.
type people struct{ *os.File }

func (p people) Name() string { return "people" }

func (p people) Send(_ context.Context, n *receiver.Notification) error {
	var text strings.Builder
	for _, a := range n.Alerts {
		_, id, _ := strings.Cut(a.URL, "/incidents/")
		fmt.Fprintln(&text, id)
	}
	_, err := p.WriteString(text.String())
	return err
}
