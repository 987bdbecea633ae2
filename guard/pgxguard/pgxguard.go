package pgxguard

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
	"github.com/belaygo/belay/internal/dbtx/pipeline/pgxpipe"
	"github.com/belaygo/belay/internal/sqlfront"
	"github.com/belaygo/belay/once"
)

func init() { pipeline.Register(pgxpipe.Of) }

// Do is Guard.Do for an operation that writes by pgx. Name its rows with guard.Row, in
// guard.Protects and guard.Also.
func Do(ctx context.Context, g *guard.Guard, key string, op func(ctx context.Context, tx pgx.Tx) error, opts ...guard.Option) error {
	if op == nil {
		return g.Do(ctx, key, nil, opts...)
	}
	return g.Do(ctx, key, func(ctx context.Context, _ *gorm.DB) error {
		tx, err := Tx(ctx)
		if err != nil {
			return err
		}
		return op(ctx, tx)
	}, opts...)
}

// Once is guard.Once for an operation that writes by pgx.
func Once[T any](ctx context.Context, g *guard.Guard, r once.Request, op func(ctx context.Context, tx pgx.Tx) (T, error), opts ...guard.Option) (guard.Answer[T], error) {
	if op == nil {
		return guard.Once[T](ctx, g, r, nil, opts...)
	}
	return guard.Once(ctx, g, r, func(ctx context.Context, _ *gorm.DB) (none T, err error) {
		tx, err := Tx(ctx)
		if err != nil {
			return none, err
		}
		return op(ctx, tx)
	}, opts...)
}

var errOtherDriver = errors.New("pgxguard: the Guard's pool is not one of pgx: open it with stdlib.OpenDBFromPool")

// Tx returns the transaction of the operation that ctx comes from, whatever began it: Do, Once, a
// middleware, a consumer. It is always the same one. Elsewhere it returns an error that matches
// dbguard.ErrOutside. Like a pgx.Tx of pgx it is used by one goroutine at a time.
func Tx(ctx context.Context) (pgx.Tx, error) {
	t, err := dbtx.Operation(ctx)
	if err != nil {
		return nil, err
	}
	raw := t.Raw()
	s, err := raw.Other(func() (sqlfront.Other, error) { return newSession(raw) })
	if err != nil {
		return nil, ended(err)
	}
	return s.(*session).whole, nil
}
