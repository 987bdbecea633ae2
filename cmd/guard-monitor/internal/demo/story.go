package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/guard"
)

// play has the crowd come, and tells what happens. It returns what is wrong
// about it.
func play(ctx context.Context, name string, s scene, scr *screen) error {
	shop, err := startShop(s)
	if err != nil {
		return err
	}
	scr.text(bold, fmt.Sprintf("A flash sale of %d items: %s requests come at once, every second one repeats another, and the shop has %d instances.",
		items, thousands(requests), instances))
	scr.text(dim, s.is())

	scr.step(ctx, "The lock turns the crowd away")
	c := crowd{requests: newRequests(requests, shop), half: items / 2}
	stop := scr.watch(func() string { return c.progress(scr) })
	c.halfway = func(ctx context.Context, click, double request) (clicked, doubled, err error) {
		stop()
		scr.say(ctx, "the crowd", c.sofar())
		if clicked, doubled, err = tellFailure(ctx, s, scr, click, double); err == nil {
			scr.step(ctx, "The sale goes on")
			stop = scr.watch(func() string { return c.progress(scr) })
		}
		return clicked, doubled, err
	}
	answers := c.rush(ctx)
	stop()
	err = errors.Join(c.failed, closeShop(shop)) // which hands over the last events
	if ctx.Err() != nil {
		return stopped(ctx, errors.Join(err, count(answers).other))
	}
	if err != nil {
		return err
	}

	told := count(answers)
	scr.say(ctx, "the crowd", fmt.Sprintf("%d have bought; the lock stopped %d; the database stopped %d ordinary repeats and %d after a lock failure; %d came too late",
		told.sold, told.busy, told.repeats, told.failures, told.soldOut))
	books, err := readBooks(ctx, s)
	if err != nil {
		return err
	}
	checks := audit(items, told, books)
	scr.step(ctx, "The books, as the databases have them")
	for _, c := range checks {
		scr.check(ctx, c)
	}
	fmt.Fprintf(scr.out, "\n%s: %d requests, %d sold, %d oversold, %s, %s intercepted, %s\n",
		name, len(answers), books.orders, books.oversold(items), plural(books.duplicates(), "duplicate"),
		plural(int64(told.failures), "lock failure"), plural(books.failures, "alert"))
	return wrong(checks)
}

// stopped says why the sale was not over when ctx ended. Somebody who stops it
// does not ask what else went wrong; if it took too long, that is the reason.
func stopped(ctx context.Context, wrong error) error {
	err := fmt.Errorf("stopped before the sale was over: %w", context.Cause(ctx))
	if !errors.Is(err, errTimeout) {
		return err
	}
	return errors.Join(err, wrong)
}

// tellFailure has one lock lost and follows what comes of it.
func tellFailure(ctx context.Context, s scene, scr *screen, click, double request) (clicked, doubled, err error) {
	scr.step(ctx, "A lock is lost")
	clicked, doubled, err = s.loseLock(ctx, scr, click, double)
	switch {
	case err != nil:
		return clicked, doubled, err
	case errors.Is(clicked, guard.ErrIntercepted):
		scr.say(ctx, s.database(), "refuses the order that comes second, by the unique index on its number; "+click.to.name+" rolls back")
	case errors.Is(clicked, guard.ErrLost):
		scr.say(ctx, click.to.name, "notices that its lock is gone, and rolls back")
	default:
		return clicked, doubled, errors.Join(errors.New(click.to.name+" was not told of a lock failure"), clicked)
	}
	return clicked, doubled, tellAlert(ctx, s, scr)
}

// tellAlert follows an event from the shop to people.
func tellAlert(ctx context.Context, s scene, scr *screen) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.desk().patience, errors.New("it does not come"))
	defer cancel()
	scr.step(ctx, "The event goes out")
	received, err := s.desk().event(ctx)
	if err != nil {
		return err
	}
	ev := received.Event
	scr.say(ctx, ev.Instance, fmt.Sprintf("has stored an event beside the orders: verdict %s, outcome %s, key %s, holder at the conflict: %s",
		ev.Verdict, ev.Outcome, ev.Key, ev.HolderAtConflict))
	if err := outboxEmpty(ctx, s); err != nil {
		return err
	}
	scr.say(ctx, s.broker(), "has it, confirmed; no row is left in the outbox")

	found, err := s.desk().explanation(ctx, ev.ID)
	if err != nil {
		return err
	}
	scr.step(ctx, "guard-monitor explains")
	scr.say(ctx, "guard-monitor", fmt.Sprintf("cause: %s, confidence %s", found.Cause, found.Confidence))
	for _, e := range found.Evidence {
		scr.item(ctx, words.English.Evidence(e))
	}

	m, err := s.desk().message(ctx)
	if err != nil {
		return err
	}
	scr.step(ctx, "People are told")
	scr.alarm(ctx, "alert", m.summary())
	scr.say(ctx, "", m.Annotations[receiver.AnnotationDescription])
	scr.say(ctx, "", "Next: "+m.Annotations[receiver.AnnotationNext])
	return nil
}

// outboxEmpty waits until all events are with the broker.
func outboxEmpty(ctx context.Context, s scene) error {
	return until(ctx, "the outbox to be empty", func() (bool, error) {
		var left int64
		err := s.db().WithContext(ctx).Table("belay_outbox").Count(&left).Error
		return err == nil && left == 0, err
	})
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// thousands writes a number with its groups apart.
func thousands(n int64) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
