package guard

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/once"
)

// Tx returns the transaction of the operation that ctx comes from, whatever began it: Do, Once, a
// middleware, a consumer. Its statements have ctx. Elsewhere it returns nil. SQL returns the same
// transaction for statements in SQL.
func Tx(ctx context.Context) *gorm.DB {
	t := dbtx.FromContext(ctx)
	if t == nil {
		return nil
	}
	return t.DB().WithContext(ctx)
}

// Request returns the request that the operation of ctx serves, for its Downstream ids: that of
// For, of Once, or of a middleware or a consumer. It reports false for an operation that serves
// none, and outside of operations.
func Request(ctx context.Context) (once.Request, bool) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok || s.origin.request == nil {
		return once.Request{}, false
	}
	return s.origin.request.request, true
}

// scopeKey asks a context for the scope that it belongs to.
type scopeKey struct{}

// A scope is the context of a call's operation. It carries the leases, too, in which another
// acquire of a key is nested.
type scope struct {
	context.Context
	keys   *keySet
	origin origin // of its messages
	sent   attempted
}

// newScope returns the scope of an attempt.
func newScope(ctx context.Context, keys *keySet, request *claiming) *scope {
	s := &scope{Context: ctx, keys: keys}
	s.origin = origin{plan: keys.plan, request: request, main: keys.plan.main, attempted: &s.sent}
	return s
}

func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	if v := s.Context.Value(key); v != nil {
		return v
	}
	return s.keys.value(key)
}

var errNoOrigin = errors.New("guard: a message is sent inside an operation, with its ctx")

// originOf returns that of the operation that ctx comes from.
func originOf(ctx context.Context) (*origin, error) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok {
		return nil, errNoOrigin
	}
	return &s.origin, nil
}
