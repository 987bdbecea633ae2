package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/belaygo/belay/cmd/internal/dsn"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

// requestTimeout is how long the database has for an answer.
const requestTimeout = 10 * time.Second

// open returns the source of a record.
func open(from dsn.Source, record string) (source switchlock.Source, closePool func(), err error) {
	pool, dialect, err := from.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, errUsage)
	}
	source, err = sqllock.NewSource(pool, sqllock.Dialect(dialect), record)
	if err != nil {
		_ = pool.Close()
		return nil, nil, err
	}
	return source, func() { _ = pool.Close() }, nil
}

// status prints the record. It is an error if there is none.
func status(ctx context.Context, s switchlock.Source, w io.Writer) error {
	r, err := read(ctx, s)
	switch {
	case err != nil:
		return err
	case r.Epoch == 0:
		return errNoRecord
	}
	_, err = fmt.Fprintln(w, describe(r))
	return err
}

var errNoRecord = errors.New("no record of this name: start a service first, or correct -record")

func read(ctx context.Context, s switchlock.Source) (switchlock.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.Read(ctx)
}

// describe returns what a record means, for people.
func describe(r switchlock.Record) string {
	switch {
	case r.Settled:
		return fmt.Sprintf("epoch %d: locks are kept in %s", r.Epoch, r.To)
	case r.From == r.To:
		return fmt.Sprintf("epoch %d: locks stay in %s; there can be no switch for %v, as the record changes", r.Epoch, r.To, r.Cross)
	}
	return fmt.Sprintf("epoch %d: locks move from %s to %s; each process needs both for %v (by %s)", r.Epoch, r.From, r.To, r.Cross, r.By)
}

// to makes a switch, and waits until it is settled unless c.nowait is set.
func (c command) to(ctx context.Context, s switchlock.Source, w io.Writer) error {
	change := switchlock.Change{To: c.args[1], By: c.by}
	if c.goneFor != notGone {
		change.GoneSince = time.Now().Add(-c.goneFor)
	}
	r, err := makeSwitch(ctx, s, change)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w, describe(r)); err != nil || r.Settled || c.nowait {
		return err
	}
	return settled(ctx, s, r, w)
}

func makeSwitch(ctx context.Context, s switchlock.Source, c switchlock.Change) (switchlock.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return switchlock.Switch(ctx, s, c)
}

// settled waits until a process writes that a switch is over.
func settled(interrupt context.Context, s switchlock.Source, r switchlock.Record, w io.Writer) error {
	const often = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(interrupt, 2*(r.Cross+2*r.Lease)+requestTimeout)
	defer cancel()
	for {
		now, err := read(ctx, s)
		switch {
		case err == nil && now.Epoch != r.Epoch:
			return fmt.Errorf("another switch was made: %s", describe(now))
		case err == nil && now.Settled:
			_, err := fmt.Fprintln(w, describe(now))
			return err
		}
		switch {
		case interrupt.Err() != nil:
			return errors.New("interrupted; the switch goes on")
		case wait.Sleep(ctx, often, nil) == nil:
		case interrupt.Err() == nil:
			return errors.Join(fmt.Errorf("the switch goes on, but is not settled yet: check that a service runs whose switchlock.Config.Engines has %s. To go back, run belay-switch again", r.To), err)
		}
	}
}
