package lograte_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/lograte"
)

// A line is logged at once, and then one in ten seconds, which counts the others.
func TestLinesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var l lograte.Limit
		logger := slog.New(slog.NewTextHandler(&out, nil))
		for n, want := range []string{"left_out=0", "left_out=99", "left_out=99"} {
			for range 100 {
				l.Warn(t.Context(), logger, "refused", slog.String("remote", "203.0.113.1"))
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != n+1 || !strings.HasSuffix(lines[n], "remote=203.0.113.1 "+want) {
				t.Fatalf("round %d, want one more line with %s:\n%s", n, want, out.String())
			}
			<-time.After(10 * time.Second)
		}
	})
}
