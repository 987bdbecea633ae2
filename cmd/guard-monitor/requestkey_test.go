package main_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/belaygo/belay/once"
)

// TestRequestKeys: the keys are those under which services report.
func TestRequestKeys(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		scope []string
	}{
		{[]string{"charge", "tenant", "user"}, []string{"tenant", "user"}},
		{[]string{"charge"}, once.Anyone},
	} {
		cmd := exec.Command(binary, append([]string{"request-key"}, tt.args...)...)
		cmd.Stdin = strings.NewReader("a-1\n\nb 2\n")
		out, err := cmd.CombinedOutput()
		var want strings.Builder
		for _, id := range []string{"a-1", "b 2"} {
			fmt.Fprintf(&want, "%s %q\n", once.Request{Operation: "charge", Scope: tt.scope, ID: id}.Key(), id)
		}
		if err != nil || string(out) != want.String() {
			t.Errorf("%v: %v\n%s, want\n%s", tt.args, err, out, want.String())
		}
	}
}
