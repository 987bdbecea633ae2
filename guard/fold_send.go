package guard

import (
	"context"
	"reflect"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/message"
)

// target implements foldable. Members may send different messages, and not as many.
func (s sending) target(context.Context, *folding) (target, bool) {
	return target{model: reflect.TypeFor[Message](), table: message.Table}, s.protect(nil) == nil
}

func (s sending) inserts() any { return nil }

// fold implements foldable.
func (s sending) fold(ctx context.Context, t *dbtx.Tx, _ *gorm.DB, _ *folding) (fold, error) {
	from, err := originOf(ctx)
	if err != nil {
		return nil, err
	}
	return &foldedSend{tx: t, plan: from.plan}, nil
}

// A foldedSend is the messages of several members, in the order of their turns.
type foldedSend struct {
	tx   *dbtx.Tx
	plan *plan
	rows []message.Row
}

func (f *foldedSend) try(_ context.Context, s step) (func(*dbtx.Tx), func(), error) {
	own := s.(sending)
	from := newOrigin(f.plan, own.request)
	rows, err := own.rows(from)
	if err == nil {
		err = from.take(rows)
	}
	if err != nil {
		return nil, nil, err
	}
	return func(*dbtx.Tx) { f.rows = append(f.rows, rows...) }, func() {}, nil
}

func (f *foldedSend) save(ctx context.Context, _ *gorm.DB) error { return f.tx.Send(ctx, f.rows) }
