package background

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
)

// Logger returns a logger that writes to l, or to slog.Default() if l is nil. If l panics, the
// record is lost, which is written to the standard error, and the caller goes on.
func Logger(l *slog.Logger) *slog.Logger {
	l = cmp.Or(l, slog.Default()) //nolint:forbidigo // the default of every Config
	if _, done := l.Handler().(handler); done {
		return l
	}
	return slog.New(handler{l.Handler()})
}

// A handler is a slog.Handler that does not panic.
type handler struct{ to slog.Handler }

func (h handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer recovered(level.String())
	return h.to.Enabled(ctx, level)
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	defer recovered(r.Message)
	return h.to.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) (with slog.Handler) {
	with = h //nolint:wastedassign // if the next line panics
	defer recovered("attributes")
	return handler{h.to.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) (with slog.Handler) {
	with = h //nolint:wastedassign // if the next line panics
	defer recovered(name)
	return handler{h.to.WithGroup(name)}
}

// recovered ends the panic of a method that was to handle what.
func recovered(what string) {
	if p := recover(); p != nil {
		fmt.Fprintf(os.Stderr, "belay: not logged: %s: the logger panics: %v\n", what, p)
	}
}
