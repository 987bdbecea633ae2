package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/guard"
)

var errTimeout = fmt.Errorf("not done after %v", timeout)

// play runs the sale, and prints what happens. It returns what went wrong.
func (e *embedded) play(ctx context.Context, scr *screen) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	shop, err := e.startShop(ctx)
	if err != nil {
		return err
	}
	scr.text(fmt.Sprintf("A flash sale of %d items: %d requests come at once, every second one repeats another, and the shop has %d instances.",
		items, requests, instances))
	scr.text("Redis, the database (SQLite), the broker and guard-monitor are all in this process.")

	scr.step("The lock turns the crowd away")
	c := crowd{requests: newRequests(requests, shop)}
	c.halfway = func(ctx context.Context, click, double request) (clicked, doubled, err error) {
		scr.say("the crowd", fmt.Sprintf("%d sold; the lock turned away %d tries", c.sold.Load(), c.refused.Load()))
		if clicked, doubled, err = e.tellFailure(ctx, scr, click, double); err == nil {
			scr.step("The sale goes on")
		}
		return clicked, doubled, err
	}
	answers := count(c.rush(ctx))
	err = errors.Join(c.failed, closeShop(shop)) // which hands over the last events
	if ctx.Err() != nil {
		return stopped(ctx, errors.Join(err, answers.other))
	}
	if err != nil {
		return err
	}

	scr.say("the crowd", fmt.Sprintf("%d have bought; the lock stopped %d; the database stopped %d ordinary repeats and %d after a lock failure; %d came too late",
		answers.sold, answers.busy, answers.repeats, answers.failures, answers.soldOut))
	books, err := e.readBooks(ctx)
	if err != nil {
		return err
	}
	scr.step("The books, as the databases have them")
	var wrong []error
	for _, c := range audit(answers, books) {
		if c.ok {
			scr.say("ok", c.want)
		} else {
			scr.say("WRONG", c.got)
			wrong = append(wrong, errors.New(c.got))
		}
	}
	fmt.Fprintf(scr.out, "\nbelay demo: %d requests, %d sold, %d oversold, %s, %s intercepted, %s\n",
		requests, books.orders, books.oversold(), plural(books.duplicates(), "duplicate"),
		plural(int64(answers.failures), "lock failure"), plural(books.failures, "alert"))
	return errors.Join(wrong...)
}

// stopped returns why the sale was not over when ctx ended. What else went wrong is a
// reason only if the sale took too long, and not if somebody stopped it.
func stopped(ctx context.Context, wrong error) error {
	err := fmt.Errorf("stopped before the sale was over: %w", context.Cause(ctx))
	if !errors.Is(err, errTimeout) {
		return err
	}
	return errors.Join(err, wrong)
}

// tellFailure loses one lock and follows what comes of it.
func (e *embedded) tellFailure(ctx context.Context, scr *screen, click, double request) (clicked, doubled, err error) {
	scr.step("A lock is lost")
	clicked, doubled, err = e.loseLock(ctx, scr, click, double)
	switch {
	case err != nil:
		return clicked, doubled, err
	case errors.Is(clicked, guard.ErrIntercepted):
		scr.say("SQLite", "refuses the order that comes second, by the unique index on its number; "+click.to.name+" rolls back")
	case errors.Is(clicked, guard.ErrLost):
		scr.say(click.to.name, "notices that its lock is gone, and rolls back")
	default:
		return clicked, doubled, errors.Join(errors.New(click.to.name+" was not told of a lock failure"), clicked)
	}
	return clicked, doubled, e.tellAlert(ctx, scr)
}

// tellAlert follows an event from the shop to people.
func (e *embedded) tellAlert(ctx context.Context, scr *screen) error {
	ctx, cancel := context.WithTimeoutCause(ctx, e.monitor.patience, errors.New("it does not come"))
	defer cancel()
	scr.step("The event goes out")
	ev, err := e.monitor.event(ctx)
	if err != nil {
		return err
	}
	scr.say(ev.Instance, fmt.Sprintf("has stored an event beside the orders: verdict %s, outcome %s, key %s, holder at the conflict: %s",
		ev.Verdict, ev.Outcome, ev.Key, ev.HolderAtConflict))
	err = until(ctx, "the outbox to be empty", func() (bool, error) {
		var left int64
		err := e.db.WithContext(ctx).Table("belay_outbox").Count(&left).Error
		return err == nil && left == 0, err
	})
	if err != nil {
		return err
	}
	scr.say("the broker", "has it, confirmed; no row is left in the outbox")

	found, err := e.monitor.explanation(ctx, ev.ID)
	if err != nil {
		return err
	}
	scr.step("guard-monitor explains")
	scr.say("guard-monitor", fmt.Sprintf("cause: %s, confidence %s", found.Cause, found.Confidence))
	for _, row := range found.Evidence {
		scr.item(words.English.Evidence(row))
	}

	alert, err := e.monitor.alert(ctx)
	if err != nil {
		return err
	}
	scr.step("People are told")
	scr.say("alert", alert.Annotations[receiver.AnnotationSummary])
	scr.say("", alert.Annotations[receiver.AnnotationDescription])
	scr.say("", "Next: "+alert.Annotations[receiver.AnnotationNext])
	return nil
}

func plural(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
