package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/sqlfront"
)

// NewHandle returns a handle of a pool, which find returns when it is needed. Its statements run
// in the guarded transaction of their context, if that is on the same pool.
func NewHandle(find func() (*sql.DB, error)) *sqlfront.Handle {
	return sqlfront.New(find, func(ctx context.Context) *sqlfront.Transaction {
		t := FromContext(ctx)
		if t == nil {
			return nil
		}
		if pool, err := find(); err != nil || t.pool != pool {
			return nil
		}
		return &t.raw
	})
}

// errNoOperation is returned outside of an operation.
var errNoOperation = fmt.Errorf("%w: the context comes from no operation", conflict.ErrOutside)

// Operation returns the transaction of the operation that ctx comes from. Elsewhere the error
// matches conflict.ErrOutside.
func Operation(ctx context.Context) (*Tx, error) {
	t := FromContext(ctx)
	if t == nil {
		return nil, errNoOperation
	}
	return t, nil
}

// errNoHandle is returned by a transaction that was begun without a handle.
var errNoHandle = errors.New("dbguard: the transaction was begun without a handle of its pool")

// SQL returns the transaction as database/sql has it, always the same value.
func (t *Tx) SQL() (*sql.Tx, error) {
	if t.options.SQL == nil {
		return nil, errNoHandle
	}
	return t.options.SQL.Tx(t.ctx, &t.raw)
}

// Raw returns the transaction as fronts of drivers have it.
func (t *Tx) Raw() *sqlfront.Transaction { return &t.raw }
