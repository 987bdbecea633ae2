package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
)

// judge notes whether the sender of a letter may speak for its service.
func (c *call) judge(l *deadletter.Letter) {
	if l.Err == nil {
		l.Refused = c.cfg.Admit(l.Sender, l.Event.Service)
	}
}

func listDead(ctx context.Context, c *call) error {
	if err := c.checkLimit(1, deadletter.MaxLetters); err != nil {
		return err
	}
	letters, total, err := deadletter.List(ctx, string(c.cfg.AMQPURL), c.limit)
	if err != nil {
		return err
	}
	for i := range letters {
		c.judge(&letters[i])
		if _, err := fmt.Fprintln(c.stdout, letters[i].Line()); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(c.stdout, "%d of %d dead letters\n", len(letters), total)
	return err
}

func showDead(ctx context.Context, c *call) error {
	letters, _, err := deadletter.List(ctx, string(c.cfg.AMQPURL), deadletter.MaxLetters)
	if err != nil {
		return err
	}
	for _, id := range c.args {
		i := slices.IndexFunc(letters, func(l deadletter.Letter) bool { return l.ID == id })
		if i < 0 {
			return fmt.Errorf("no dead letter has the id %.40q", id)
		}
		c.judge(&letters[i])
		if _, err := fmt.Fprintln(c.stdout, letters[i].Text()); err != nil {
			return err
		}
	}
	return nil
}

// replayDead replays letters that are events of an admitted sender. Others would become dead letters again,
// so it refuses them even if they are named.
func replayDead(ctx context.Context, c *call) error {
	if err := c.checkLimit(1, deadletter.MaxLetters); err != nil {
		return err
	}
	ids := c.names()
	all := slices.Equal(ids, []string{"all"})
	found, chosen, wrong := make(map[string]bool), 0, 0
	replayed, err := deadletter.Replay(ctx, string(c.cfg.AMQPURL), func(l *deadletter.Letter) bool {
		if !all && !slices.Contains(ids, l.ID) {
			return false
		}
		found[l.ID] = true
		if c.judge(l); l.Err != nil || l.Refused != nil {
			wrong++
			return false
		}
		if chosen == c.limit {
			return false
		}
		chosen++
		return true
	})
	fmt.Fprintf(c.stdout, "%d dead letters replayed\n", replayed)
	switch {
	case err != nil:
		return err
	case !all && len(found) < len(ids):
		return fmt.Errorf("%d of the ids have no dead letter", len(ids)-len(found))
	case wrong > 0:
		return fmt.Errorf("%d are no events, or refused, and stay: see dlq show", wrong)
	}
	return nil
}
