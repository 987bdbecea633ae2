package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Log returns a Publisher that writes each event whole to logger, at level
// warn: for programs without a broker. A nil logger means slog.Default.
// Publish fails if the logger drops records of that level or its handler
// fails, and for an invalid event, which it logs all the same.
func Log(logger *slog.Logger) Publisher {
	return PublisherFunc(func(ctx context.Context, ev Event) error {
		handler := slog.Default().Handler()
		if logger != nil {
			handler = logger.Handler()
		}
		if !handler.Enabled(ctx, slog.LevelWarn) {
			return errors.New("notify: log event: the logger drops records of level warn")
		}
		record := slog.NewRecord(time.Now(), slog.LevelWarn, "lock failure intercepted", 0)
		record.AddAttrs(slog.Any("event", ev))
		if err := handler.Handle(ctx, record); err != nil {
			return fmt.Errorf("notify: log event: %w", err)
		}
		return ev.Validate()
	})
}

// LogValue lets slog write an event, valid or not, as a group of attributes
// with the names of its JSON. Empty ones are left out.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("id", e.ID),
		slog.String("verdict", string(e.Verdict)),
		slog.String("outcome", string(e.Outcome)),
		slog.String("service", e.Service),
	}
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text("instance", e.Instance)
	text("key", e.Key)
	text("table", e.Table)
	if len(e.Index) > 0 {
		attrs = append(attrs, slog.Any("index", e.Index))
	}
	if v := e.Versions; v != nil {
		attrs = append(attrs, slog.Group("versions",
			slog.Int64("expected", v.Expected), slog.Int64("found", v.Found)))
	}
	text("owner", e.Owner)
	if e.Token != 0 {
		attrs = append(attrs, slog.Int64("token", e.Token))
	}
	if e.FirstToken != 0 {
		attrs = append(attrs, slog.Int64("first_token", e.FirstToken))
	}
	if e.Loss != "" {
		attrs = append(attrs, slog.String("loss", string(e.Loss)))
	}
	if !e.Deadline.IsZero() {
		attrs = append(attrs, slog.Time("deadline", e.Deadline.UTC()))
	}
	if !e.AcquiredAt.IsZero() {
		attrs = append(attrs, slog.Time("acquired_at", e.AcquiredAt.UTC()))
	}
	if e.TTL != 0 {
		attrs = append(attrs, slog.Int64("ttl_ms", e.TTL.Milliseconds()))
	}
	attrs = append(attrs, slog.Time("caught_at", e.CaughtAt.UTC()))
	if e.Place != (Place{}) {
		place := []any{slog.String("node", e.Place.Node), slog.Int("slot", e.Place.Slot)}
		if e.Place.Entry != "" {
			place = append(place, slog.String("entry", e.Place.Entry))
		}
		attrs = append(attrs, slog.Group("place", place...))
	}
	text("holder_at_conflict", string(e.HolderAtConflict))
	text("holder_owner", e.HolderOwner)
	attrs = append(attrs, slog.Int("count", e.Count))
	text("trace_id", e.TraceID)
	text("library", e.Library)
	text("traceparent", e.Trace.Checked().Parent)
	return slog.GroupValue(attrs...)
}
