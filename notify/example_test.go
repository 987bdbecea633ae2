package notify_test

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/notify"
)

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
	fmt.Println(publisher.Publish(context.Background(), notify.Event{Verdict: notify.Overlap}))
	// Output:
	// overlap
	// <nil>
}
