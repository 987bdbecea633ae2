package requestkey_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/requestkey"
)

// TestKeysStay: tables have the sums, so a request keeps its own from version to version.
func TestKeysStay(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for _, c := range []struct {
		operation string
		scope     []string
		id, want  string
	}{
		{"order", nil, "1", "once:order:704b3fdfd259deafc4f7cbd4afa183d4"},
		{"order", []string{"customer", ""}, "A-1", "once:order:21bbf1380111ea2e197c9f965d23678c"},
		{"", []string{"a", "b"}, "", "once::30b8409267957fdc045748adc8e68234"},
		{"order", []string{long}, long, "once:order:5aa0e1f1352f96c16315d2814ab11810"},
	} {
		if got := requestkey.Of(c.operation, c.scope, c.id); got != c.want {
			t.Errorf("%q of %q in %q has the key %s, want %s", c.id, c.operation, c.scope, got, c.want)
		}
	}
}
