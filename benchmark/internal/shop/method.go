package shop

import "github.com/belaygo/belay/benchmark/internal/measure"

// A Method is a way to let a business operation take effect once.
type Method string

// The methods. The paper measured the first four and, as its own, the fifth.
const (
	Pessimistic Method = "pessimistic"  // SELECT ... FOR UPDATE
	Optimistic  Method = "optimistic"   // version column, tried again after a conflict
	UniqueIndex Method = "unique-index" // the database alone
	RedisLock   Method = "redis-lock"   // SET NX PX, compare and delete
	Belay       Method = "belay"        // both layers, fail fast
	BelayNoGate Method = "belay-nogate" // the same without the local gate
	BelayMarked Method = "belay-marked" // the same with guard.Remember: repeats are refused by Redis alone
	BelayStock  Method = "belay-stock"  // an update under the item's key, waiting; callers of one instance share transactions
)

// Methods returns all methods in the order of the paper.
func Methods() []Method {
	return []Method{Pessimistic, Optimistic, UniqueIndex, RedisLock, Belay, BelayNoGate, BelayMarked, BelayStock}
}

// Sells reports whether m sells stock; the others insert orders.
func (m Method) Sells() bool { return m == Pessimistic || m == Optimistic || m == BelayStock }

// Guarded reports whether m is Belay.
func (m Method) Guarded() bool {
	return m == Belay || m == BelayNoGate || m == BelayMarked || m == BelayStock
}

// Operation is what m does to rows: insert or update.
func (m Method) Operation() string {
	if m.Sells() {
		return "update"
	}
	return "insert"
}

// Parameter is the name of the request parameter that m works on.
func (m Method) Parameter() string {
	if m.Sells() {
		return "item"
	}
	return "order"
}

// Path is that of a request for m, without an address.
func (m Method) Path(value string) string {
	return "/" + string(m) + "?" + m.Parameter() + "=" + value
}

// Key is the name under which m locks what the request parameter names.
func (m Method) Key(value string) string { return m.Parameter() + ":" + value }

// ParseMethods reads a list of methods with commas between them; the empty list
// means all.
func ParseMethods(list string) ([]Method, error) {
	return measure.Choose(list, Methods(), func(m Method) string { return string(m) })
}
