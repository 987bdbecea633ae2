package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
)

func listDead(ctx context.Context, c *call) (err error) {
	if err := c.checkLimit(1, deadletter.MaxLetters); err != nil {
		return err
	}
	admission, err := c.admission(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admission.close()) }()
	letters, total, err := deadletter.List(ctx, string(c.cfg.AMQPURL), c.limit)
	if err != nil {
		return err
	}
	for i := range letters {
		if err := admission.judge(ctx, &letters[i]); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.stdout, letters[i].Line()); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(c.stdout, "%d of %d dead letters\n", len(letters), total)
	return err
}

func showDead(ctx context.Context, c *call) (err error) {
	admission, err := c.admission(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admission.close()) }()
	letters, err := deadletter.Find(ctx, string(c.cfg.AMQPURL), c.names())
	if err != nil {
		return err
	}
	for _, id := range c.args {
		l, ok := letters[id]
		if !ok {
			return fmt.Errorf("no dead letter has the id %.40q", id)
		}
		if err := admission.judge(ctx, &l); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.stdout, l.Text()); err != nil {
			return err
		}
	}
	return nil
}

// replayDead replays letters that are events of an admitted sender. Others would become dead letters again,
// so it refuses them even if they are named.
func replayDead(ctx context.Context, c *call) (err error) {
	if err := c.checkLimit(1, deadletter.MaxLetters); err != nil {
		return err
	}
	admission, err := c.admission(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admission.close()) }()
	r := &replay{admission: admission, ids: c.names(), limit: c.limit, found: make(map[string]bool)}
	replayed, err := deadletter.Replay(ctx, string(c.cfg.AMQPURL), func(l *deadletter.Letter) bool { return r.pick(ctx, l) })
	fmt.Fprintf(c.stdout, "%d dead letters replayed\n", replayed)
	if err := cmp.Or(err, r.err); err != nil {
		return err
	}
	if r.left > 0 {
		fmt.Fprintf(c.stdout, "%d more can be replayed\n", r.left)
	}
	return r.problem()
}

// replay chooses the letters to replay.
type replay struct {
	*admission
	ids   []string
	limit int

	found        map[string]bool // of the ids
	chosen, left int
	wrong        int   // letters that stay
	reason       error // of the first of these
	err          error // of the store
}

func (r *replay) all() bool { return slices.Equal(r.ids, []string{"all"}) }

func (r *replay) pick(ctx context.Context, l *deadletter.Letter) bool {
	if r.err != nil || !r.all() && !slices.Contains(r.ids, l.ID) {
		return false
	}
	r.found[l.ID] = true
	if r.err = r.judge(ctx, l); r.err != nil {
		return false
	}
	if why := cmp.Or(l.Err, l.Refused); why != nil {
		r.wrong++
		r.reason = cmp.Or(r.reason, fmt.Errorf("%s: %w", l.ID, why))
		return false
	}
	if r.chosen == r.limit {
		r.left++
		return false
	}
	r.chosen++
	r.replayed(l)
	return true
}

// problem returns what was not replayed, and why.
func (r *replay) problem() error {
	switch {
	case !r.all() && len(r.found) < len(r.ids):
		return fmt.Errorf("%d of the ids have no dead letter", len(r.ids)-len(r.found))
	case r.wrong > 0:
		return fmt.Errorf("%d are no events, or refused, and stay (see dlq show), as %w", r.wrong, r.reason)
	}
	return nil
}
