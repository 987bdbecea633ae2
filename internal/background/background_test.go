package background_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/background"
)

func TestPanicIsAnError(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	err := background.Do(logger, "purge", func() error { panic("a driver") })
	if !errors.Is(err, background.ErrPanic) || !strings.Contains(err.Error(), "purge") || !strings.Contains(err.Error(), "a driver") {
		t.Errorf("error is %v, want what panicked, and how", err)
	}
	for _, want := range []string{"level=ERROR", "doing=purge", "a driver", "background_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, &log)
		}
	}
}

func TestErrorIsPassedOn(t *testing.T) {
	want := errors.New("no")
	if err := background.Do(nil, "purge", func() error { return want }); !errors.Is(err, want) || errors.Is(err, background.ErrPanic) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

// panics is a handler that panics.
type panics struct{ slog.Handler }

func (panics) Enabled(context.Context, slog.Level) bool  { panic("a logger") }
func (panics) Handle(context.Context, slog.Record) error { panic("a logger") }
func (panics) WithAttrs([]slog.Attr) slog.Handler        { panic("a logger") }
func (panics) WithGroup(string) slog.Handler             { panic("a logger") }

// on is a handler that panics when it handles a record.
type on struct{ panics }

func (on) Enabled(context.Context, slog.Level) bool { return true }

func TestPanicOfTheLogger(t *testing.T) {
	for _, h := range []slog.Handler{panics{}, on{}} {
		err := background.Do(slog.New(h), "purge", func() error { panic("a driver") })
		if !errors.Is(err, background.ErrPanic) {
			t.Errorf("error is %v, want ErrPanic", err)
		}
		l := background.Logger(slog.New(h))
		l.With("a", 1).WithGroup("b").Warn("c")
		if background.Logger(l) != l {
			t.Error("a logger that does not panic is wrapped again")
		}
	}
}

// What is logged is what the program's logger would log, with the place in the code.
func TestLogger(t *testing.T) {
	var log bytes.Buffer
	l := background.Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{AddSource: true, Level: slog.LevelWarn})))
	l.Info("quiet")
	l.With("a", 1).WithGroup("b").Warn("loud", "c", 2)
	if s := log.String(); strings.Contains(s, "quiet") || !strings.Contains(s, "loud a=1 b.c=2") || !strings.Contains(s, "background_test.go") {
		t.Errorf("logged: %s", s)
	}
}
