package journal

import (
	"testing"

	"github.com/belaygo/belay/internal/dbtx/protected"
)

// TestMissingNameThatMayChange: a row is not found by its name if the database keeps that in
// another form, and proves nothing then.
func TestMissingNameThatMayChange(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		want  Outcome
	}{
		"text":         {"a", NotCommitted},
		"integer":      {7, NotCommitted},
		"end in space": {"a ", Unresolved},
		"fraction":     {0.1, Unresolved},
	} {
		img := Image{Row: &protected.Row{Values: []any{tt.value}}, inserted: true}
		if p := img.Proof(nil, true); p.Outcome != tt.want || p.Held != (tt.want == NotCommitted) {
			t.Errorf("%s: a missing row proves %+v, want %v", name, p, tt.want)
		}
	}
}
