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
		{"order", nil, "0e8a7f0c-6b1f-4a3e-9c52-7d0f1b2a3c4d", "once:order:b61585a14abea3b862ef7cdcd2c6c233"},
		{"order", nil, "0199a1b2-c3d4-7abc-8def-0123456789ab", "once:order:0199a1b2c3d48c4aab3ed2d62aadf6c5"},
		{"order", nil, "0199A1B2-C3D4-7ABC-8DEF-0123456789AB", "once:order:0199a1b2c3d476f561217f7721131687"},
		{"order", nil, "01K6GV5GYMF2QY3VR1E8T0ZZZZ", "once:order:0199a1b2c3d4547a7fd504a323c8f47a"},
	} {
		if got := requestkey.Of(c.operation, c.scope, c.id); got != c.want {
			t.Errorf("%q of %q in %q has the key %s, want %s", c.id, c.operation, c.scope, got, c.want)
		}
	}
}
