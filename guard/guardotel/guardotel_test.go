package guardotel_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardotel"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

type Order struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func TestSpans(t *testing.T) {
	ctx := t.Context()
	g, locks, spans := traced(t)
	var inside trace.TraceID
	err := g.Do(ctx, "order:1", func(ctx context.Context, tx *gorm.DB) error {
		inside = trace.SpanContextFromContext(ctx).TraceID()
		locks.Forget("order:1")
		return guard.Insert(&Order{No: "secret"}).Run(ctx, tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = g.Apply(ctx, "order:1", guard.Insert(&Order{No: "secret"}))
	if !errors.Is(err, guard.ErrDuplicate) {
		t.Errorf("error is %v, want ErrDuplicate", err)
	}
	errOwn := errors.New("secret")
	if err := g.Do(ctx, "order:1", func(context.Context, *gorm.DB) error { return errOwn }); !errors.Is(err, errOwn) {
		t.Errorf("error is %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = g.Do(ctx, "order:1", func(context.Context, *gorm.DB) error { panic("secret") })
	}()

	want := []string{
		"belay.lock done", "belay.transaction done", "belay.do done",
		"belay.lock done", "belay.transaction conflict", "belay.do duplicate",
		"belay.lock done", "belay.transaction failed", "belay.do failed",
		"belay.lock done", "belay.transaction panic", "belay.do panic",
	}
	var got []string
	for _, s := range spans.Ended() {
		got = append(got, checked(t, s))
	}
	if !slices.Equal(got, want) {
		t.Errorf("spans are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	events := locks.Events.All()
	if len(events) != 1 || events[0].TraceID != inside.String() || !inside.IsValid() {
		t.Errorf("events are %+v, want one of trace %s", events, inside)
	}
	if !strings.Contains(events[0].Trace.Parent, inside.String()) {
		t.Errorf("the event's trace is %+v", events[0].Trace)
	}
	if tr := guardotel.New(nil).Trace(ctx); tr != (notify.Trace{}) {
		t.Errorf("trace without a span is %+v", tr)
	}
}

// traced returns a guard whose spans are recorded, and its locks.
func traced(t *testing.T) (*guard.Guard, *guardtest.Guard, *tracetest.SpanRecorder) {
	t.Helper()
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "orders.db"))
	if err := db.AutoMigrate(&Order{}); err != nil {
		t.Fatal(err)
	}
	locks := guardtest.New(t, db)
	locker, err := lock.New(locks.Engine(), lock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close(context.Background()) })
	spans := tracetest.NewSpanRecorder()
	g, err := guard.New(db, locker, guard.Config{
		Service: "test", Publisher: &locks.Events,
		Observer: guardotel.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, locks, spans
}

// checked returns the name and the outcome of a span, which must show no value
// of a row and have the status that goes with its outcome.
func checked(t *testing.T, s sdktrace.ReadOnlySpan) string {
	t.Helper()
	name := s.Name()
	for _, a := range s.Attributes() {
		if a.Key == "belay.outcome" {
			name += " " + a.Value.AsString()
		}
		if strings.Contains(a.Value.AsString(), "secret") {
			t.Errorf("span %s shows a value of a row: %v", s.Name(), a)
		}
	}
	if len(s.Events()) > 0 || strings.Contains(s.Status().Description, "secret") {
		t.Errorf("span %s shows the text of an error", s.Name())
	}
	failed := strings.HasSuffix(name, "failed") || strings.HasSuffix(name, "panic")
	if (s.Status().Code == codes.Error) != failed {
		t.Errorf("span %s has status %v", name, s.Status().Code)
	}
	return name
}
