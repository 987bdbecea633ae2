package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gorm.io/gorm"

	"github.com/belaygo/belay/relay"
)

func (c command) run(ctx context.Context, w io.Writer) error {
	db, closePool, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer closePool()
	switch c.name {
	case "status":
		return c.status(ctx, db, w)
	case "list":
		return c.list(ctx, db, w)
	}
	return c.settle(ctx, db, w)
}

func (c command) status(ctx context.Context, db *gorm.DB, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	b, err := relay.Count(ctx, db)
	if err != nil {
		return c.failed(err)
	}
	return c.printBacklog(w, b)
}

func (c command) list(ctx context.Context, db *gorm.DB, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	find := relay.ListDead
	if c.all {
		find = relay.List
	}
	list, err := find(ctx, db, c.limit+1)
	if err != nil {
		return c.failed(err)
	}
	return c.printList(w, list[:min(len(list), c.limit)], len(list) > c.limit)
}

// A settled message is one of the command line, and what became of it.
type settled struct {
	ID    string `json:"id"`
	Done  bool   `json:"done"`
	Error string `json:"error,omitempty"`
}

// settle retries or drops messages. A failure of one does not keep it from the others.
func (c command) settle(ctx context.Context, db *gorm.DB, w io.Writer) error {
	var all []settled
	var errs []error
	for _, id := range c.ids {
		err := c.settleOne(ctx, db, id)
		s := settled{ID: id, Done: err == nil}
		if err != nil {
			s.Error = err.Error()
			errs = append(errs, err)
		}
		all = append(all, s)
	}
	return errors.Join(append(errs, c.printSettled(w, all))...)
}

func (c command) settleOne(ctx context.Context, db *gorm.DB, id string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := relay.Find(ctx, db, id)
	if err == nil {
		err = c.settleSeen(ctx, db, m)
	}
	switch {
	case errors.Is(err, errUndecided):
		return err
	case errors.Is(err, relay.ErrNotWaiting):
		return fmt.Errorf("%w: %q: it has been sent, or somebody else has decided", errGone, id)
	case err != nil:
		return c.failed(err)
	}
	return nil
}

// settleSeen retries or drops a message as it was seen. A relay may have given it up since, so what is
// in another state by now is looked at once more.
func (c command) settleSeen(ctx context.Context, db *gorm.DB, m relay.Waiting) error {
	if c.name == "drop" {
		return relay.Drop(ctx, db, m.ID)
	}
	if err := c.retry(ctx, db, m); !errors.Is(err, relay.ErrNotWaiting) {
		return err
	}
	m, err := relay.Find(ctx, db, m.ID)
	if err != nil {
		return err
	}
	return c.retry(ctx, db, m)
}

func (c command) retry(ctx context.Context, db *gorm.DB, m relay.Waiting) error {
	if m.Undecided && !c.undecided {
		return fmt.Errorf("%w and may have taken effect, so it is not sent again: %q. Ask the called service for this ID; then drop it, or retry it with -undecided", errUndecided, m.ID)
	}
	return relay.Retry(ctx, db, m)
}
