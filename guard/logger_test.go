package guard

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/belaygo/belay/notify"
)

// An event that the Publisher does not take is logged, also if nobody gave a Logger.
func TestLostEventIsLoggedWithoutALogger(t *testing.T) {
	var buffer bytes.Buffer
	setDefaultLogger(t, &buffer)
	cfg, err := Config{
		Service:   "orders",
		Publisher: notify.PublisherFunc(func(context.Context, notify.Event) error { return errors.New("away") }),
	}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r := &reporter{cfg, newMetrics("guard")}
	r.publish(t.Context(), notify.Event{ID: "0199a1b2-lost", Verdict: notify.VerdictLost})
	if !strings.Contains(buffer.String(), "0199a1b2-lost") || !strings.Contains(buffer.String(), "level=ERROR") {
		t.Errorf("logged %q, want the event at level error", buffer.String())
	}
}

func setDefaultLogger(t *testing.T, buffer *bytes.Buffer) {
	t.Helper()
	before, out, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(buffer, nil)))
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(out) // which SetDefault leaves as it is
		log.SetFlags(flags)
	})
}
