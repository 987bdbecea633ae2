package notify_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/belaygo/belay/notify"
)

// A message from the broker is read and checked.
func ExampleEvent_UnmarshalJSON() {
	message := []byte(`{
		"specversion": "1.0",
		"id": "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b",
		"source": "/belay/orders",
		"type": "io.github.belaygo.interception.v1",
		"time": "2026-11-21T09:30:07Z",
		"datacontenttype": "application/json",
		"data": {
			"verdict": "overlap", "outcome": "refused", "service": "orders", "key": "sku:7",
			"table": "stocks", "versions": {"expected": 7, "found": 8},
			"holder_at_conflict": "other", "caught_at": "2026-11-21T09:30:07Z", "count": 1
		}
	}`)
	var ev notify.Event
	if err := ev.UnmarshalJSON(message); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ev.Verdict, ev.Key, ev.Versions.Expected, ev.Versions.Found)
	// Output: overlap sku:7 7 8
}

// For a program without a broker: each event is a line of the log.
func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	publisher := notify.Log(logger) // for guard.Config.Publisher
	err := publisher.Publish(context.Background(), notify.Event{
		ID: "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", Service: "orders", Key: "order:7",
		Verdict: notify.VerdictLost, Outcome: notify.OutcomeRolledBack, Count: 1,
		CaughtAt: time.Date(2026, 11, 21, 9, 30, 7, 0, time.UTC),
	})
	fmt.Println(err)
	// Output:
	// level=WARN msg="lock failure intercepted" event.id=0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b event.verdict=lost event.outcome=rolled_back event.service=orders event.key=order:7 event.caught_at=2026-11-21T09:30:07.000Z event.count=1
	// <nil>
}

// A Publisher of one's own beside another: whatever it does, it must not block
// for long, as Do waits for it.
func ExamplePublisherFunc() {
	counting := func(next notify.Publisher, count func(notify.Verdict)) notify.Publisher {
		return notify.PublisherFunc(func(ctx context.Context, ev notify.Event) error {
			count(ev.Verdict)
			return next.Publish(ctx, ev)
		})
	}
	none := notify.PublisherFunc(func(context.Context, notify.Event) error { return nil })
	publisher := counting(none, func(v notify.Verdict) { fmt.Println(v) })
	fmt.Println(publisher.Publish(context.Background(), notify.Event{Verdict: notify.VerdictOverlap}))
	// Output:
	// overlap
	// <nil>
}
