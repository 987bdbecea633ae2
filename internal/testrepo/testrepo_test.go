package testrepo_test

import (
	"testing"

	"github.com/belaygo/belay/internal/testrepo"
)

func TestSaysAcrossLines(t *testing.T) {
	const text = "belongs to this page, and its lines are broken behind it. "
	if !testrepo.Says(t, "docs/guarantees.md", "an update commits once for each version that it read") {
		t.Error("a promise is not found in docs/guarantees.md")
	}
	if testrepo.Says(t, "docs/guarantees.md", text) {
		t.Errorf("%q is found in docs/guarantees.md", text)
	}
}

func TestHasTest(t *testing.T) {
	for name, want := range map[string]bool{"TestHasTest": true, "TestHas": false, "TestSaysAcrossLines": true} {
		if got := testrepo.HasTest(t, "internal/testrepo", name); got != want {
			t.Errorf("HasTest(%s) = %v, want %v", name, got, want)
		}
	}
}
