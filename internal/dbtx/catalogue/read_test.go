package catalogue

import (
	"slices"
	"testing"
)

// TestBind: each name becomes a parameter, as the dialect counts them.
func TestBind(t *testing.T) {
	values := nameOf("shop.orders")
	for dialect, want := range map[string]string{
		"mysql":    "WHERE s = ? AND t = ? AND u = ?",
		"postgres": "WHERE s = $1 AND t = $2 AND u = $3",
		"sqlite":   "WHERE s = ? AND t = ? AND u = ?",
	} {
		query, args := bind(dialect, "WHERE s = @schema AND t = @name AND u = @schema", values)
		if query != want || !slices.Equal(args, []any{"shop", "orders", "shop"}) {
			t.Errorf("%s: %s with %v, want %s", dialect, query, args, want)
		}
	}
}
