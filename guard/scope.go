package guard

import "context"

// scopeKey asks a context for the scope that it belongs to.
type scopeKey struct{}

// A scope is the context of a call's operation. It carries the leases, too, in which another
// acquire of a key is nested.
type scope struct {
	context.Context
	keys   *keySet
	origin *origin // of its messages
}

func (s scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	if v := s.Context.Value(key); v != nil {
		return v
	}
	return s.keys.value(key)
}
