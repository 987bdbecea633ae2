// Package guardotel makes OpenTelemetry spans of the operations of a
// guard.Guard, and puts their traces into its events.
package guardotel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

const (
	scope      = "github.com/belaygo/belay/guard"
	keyName    = attribute.Key("belay.key")
	resultName = attribute.Key("belay.outcome")
)

// New returns an Observer for guard.Config. It makes a span of each Do,
// "belay.do", with the spans "belay.lock" and "belay.transaction" inside it, the
// latter of each attempt. Their attributes are belay.key, the key, and
// belay.outcome, the guard.Result. The texts of errors, which may hold values of rows,
// are left out. A span has the status Error unless its result is ordinary.
//
// nil means the global provider, as it is at the time of each Do.
func New(p trace.TracerProvider) guard.Observer { return observer{p} }

type observer struct{ provider trace.TracerProvider }

// Start implements guard.Observer.
func (o observer) Start(ctx context.Context, step guard.Step, key string) (context.Context, func(error)) {
	p := o.provider
	if p == nil {
		p = otel.GetTracerProvider()
	}
	ctx, span := p.Tracer(scope).Start(ctx, "belay."+string(step), trace.WithAttributes(keyName.String(key)))
	return ctx, func(err error) {
		result := guard.ResultOf(err)
		span.SetAttributes(resultName.String(string(result)))
		if !result.Ordinary() {
			span.SetStatus(codes.Error, string(result))
		}
		span.End()
	}
}

// Trace implements guard.Observer.
func (observer) Trace(ctx context.Context) notify.Trace {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return notify.Trace{}
	}
	return notify.Trace{
		Parent: fmt.Sprintf("00-%s-%s-%s", sc.TraceID(), sc.SpanID(), sc.TraceFlags()),
		State:  sc.TraceState().String(),
	}
}
