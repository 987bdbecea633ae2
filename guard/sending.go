package guard

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/message"
)

// sending is the step that sends the messages of a Change, behind all its other steps.
type sending struct {
	makes   []func() (Message, error)
	request *claiming // of the member whose step it is, with Combine
}

// sendingOf returns the step that sends messages.
func sendingOf(messages []Message) (s sending) {
	for _, m := range messages {
		s.makes = append(s.makes, func() (Message, error) { return m, nil })
	}
	return s
}

// protect implements step. A message is no protected row.
func (s sending) protect(*dbtx.Tx) error {
	if slices.ContainsFunc(s.makes, func(f func() (Message, error)) bool { return f == nil }) {
		return errors.New("guard: SendFunc with a nil function")
	}
	return nil
}

// run implements step.
func (s sending) run(ctx context.Context, t *dbtx.Tx, tx *gorm.DB) error {
	from, err := originOf(ctx)
	if err != nil {
		return err
	}
	rows, err := s.rows(from)
	if err != nil || len(rows) == 0 || tx != nil && tx.DryRun {
		return err
	}
	if err := from.take(rows); err != nil {
		return err
	}
	t.OnRollback(func() { from.drop(rows) })
	if err := t.Send(ctx, rows); err != nil {
		from.drop(rows)
		return err
	}
	fail.Point("guard/message-stored")
	return nil
}

// rows makes the messages, as they are stored.
func (s sending) rows(from *origin) ([]message.Row, error) {
	rows := make([]message.Row, len(s.makes))
	for i, f := range s.makes {
		m, err := f()
		if err != nil {
			return nil, err
		}
		if rows[i], err = from.row(m.clone()); err != nil { // the next function may use the same buffer
			return nil, err
		}
	}
	return rows, nil
}
