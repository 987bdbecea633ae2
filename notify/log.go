package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
)

// Log returns a Publisher that writes each event whole to logger, at level
// warn: for programs without a broker. A nil logger means slog.Default().
// Publish fails if the logger drops records of that level or its handler
// fails, and for an invalid event, which it still logs.
func Log(logger *slog.Logger) Publisher {
	return PublisherFunc(func(ctx context.Context, ev Event) error {
		handler := cmp.Or(logger, slog.Default()).Handler()
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
	attrs := append([]slog.Attr{slog.String("id", e.ID)}, members(reflect.ValueOf(e))...)
	if parent, _ := cloudevent.CheckTrace(e.Trace.Parent, e.Trace.State); parent != "" {
		attrs = append(attrs, slog.String("traceparent", parent))
	}
	return slog.GroupValue(attrs...)
}

// members returns the fields of a struct by the names of its JSON.
func members(v reflect.Value) (attrs []slog.Attr) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" || strings.Contains(options, "omit") && isEmpty(v.Field(i)) {
			continue
		}
		attrs = append(attrs, slog.Attr{Key: name, Value: logged(v.Field(i))})
	}
	return attrs
}

func isEmpty(v reflect.Value) bool {
	if at, ok := reflect.TypeAssert[time.Time](v); ok {
		return at.IsZero()
	}
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

func logged(v reflect.Value) slog.Value {
	switch value := v.Interface().(type) {
	case time.Time:
		return slog.TimeValue(value.UTC())
	case time.Duration:
		return slog.Int64Value(value.Milliseconds())
	}
	switch v.Kind() {
	case reflect.Pointer:
		return logged(v.Elem())
	case reflect.Struct:
		return slog.GroupValue(members(v)...)
	case reflect.String:
		return slog.StringValue(v.String())
	}
	return slog.AnyValue(v.Interface())
}
