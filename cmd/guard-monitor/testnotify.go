package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

func testNotify(ctx context.Context, c *call) error {
	names := c.names()
	chosen := slices.DeleteFunc(slices.Clone(c.cfg.Receivers), func(r config.Receiver) bool {
		return len(names) > 0 && !slices.Contains(names, r.Name)
	})
	switch {
	case len(c.cfg.Receivers) == 0:
		return usagef("the file names no receivers")
	case len(chosen) < len(names):
		return usagef("the file does not name all of these receivers")
	}
	failed := 0
	for _, r := range chosen {
		result := "sent"
		if err := sendTest(ctx, r.Config(c.cfg.Location()), c.cfg.ExternalURL); err != nil {
			failed++
			result = err.Error()
		}
		fmt.Fprintf(c.stdout, "%s (%s): %s\n", r.Name, r.Type, result)
	}
	if failed > 0 {
		return errors.Join(ctx.Err(), fmt.Errorf("%d of %d receivers did not take the test message", failed, len(chosen)))
	}
	return nil
}

func sendTest(ctx context.Context, r receiver.Config, externalURL string) error {
	to, err := receiver.New(r)
	if err != nil {
		return err
	}
	labels := map[string]string{"alertname": "BelayTest", "severity": "info"}
	return to.Send(ctx, &receiver.Notification{
		GroupKey: "test", GroupLabels: labels, Reason: "test", ExternalURL: externalURL,
		Alerts: []receiver.Alert{{
			Labels: labels,
			Annotations: map[string]string{
				receiver.AnnotationSummary:     "Test message of guard-monitor",
				receiver.AnnotationDescription: "No lock failed. Somebody ran guard-monitor test-notify.",
			},
			StartsAt: time.Now(), URL: externalURL,
		}},
	})
}
