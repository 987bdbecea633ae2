package grpcguard

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"gorm.io/gorm"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// UnaryServerInterceptor returns an interceptor that serves the calls which cfg matches once,
// in operations of g. The tables of package once must be in g's database.
func UnaryServerInterceptor(g *guard.Guard, cfg Config) (grpc.UnaryServerInterceptor, error) {
	if g == nil {
		return nil, errors.New("grpcguard: guard is nil")
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		keys := metadata.ValueFromIncomingContext(ctx, keyName)
		if !cfg.Match(info.FullMethod) || cfg.Optional && keys == nil {
			return next(ctx, req)
		}
		c := &served{Config: cfg, guard: g, method: info.FullMethod, next: next}
		answer, err := c.serve(ctx, keys, req)
		if err != nil {
			return nil, c.statusOf(err)
		}
		return answer, nil
	}, nil
}

// served is one call.
type served struct {
	Config
	guard   *guard.Guard
	method  string
	next    grpc.UnaryHandler
	request once.Request
	stream  *stream // nil without a transport
	failed  *handlerError
	after   []func() // by AfterCommit
}

// handlerError is the handler's error, which rolls back the transaction.
type handlerError struct{ error }

func (e *handlerError) Unwrap() error { return e.error }

// errPrincipal and errKeys are of the program's own functions.
var (
	errPrincipal = errors.New("grpcguard: Principal names nobody")
	errKeys      = errors.New("grpcguard: the call has no keys")
	errMessage   = errors.New("grpcguard: not a message of protobuf")
)

func (c *served) serve(ctx context.Context, keys []string, req any) (proto.Message, error) {
	message, ok := req.(proto.Message)
	if !ok {
		return nil, errMessage
	}
	opts, err := c.read(ctx, keys, message)
	if err != nil {
		return nil, err
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	got, err := guard.Once(work, c.guard, c.request, func(ctx context.Context, _ *gorm.DB) (proto.Message, error) {
		return c.run(ctx, req)
	}, opts...)
	if c.stream != nil && (err == nil && !got.Replayed || c.isHandlers(err)) {
		c.stream.release()
	}
	if err != nil {
		return nil, err
	}
	if got.Replayed {
		c.after = nil // of a run that was rolled back
		_ = grpc.SetHeader(ctx, metadata.Pairs("idempotent-replayed", "true"))
	}
	if got.Refused {
		if s, ok := got.Value.(*spb.Status); ok {
			c.failed = &handlerError{status.ErrorProto(s)}
			return nil, c.failed
		}
		return got.Value, nil
	}
	for _, f := range c.after {
		f()
	}
	return got.Value, nil
}

// read reads the parts that name the call.
func (c *served) read(ctx context.Context, keys []string, message proto.Message) ([]guard.Option, error) {
	key, err := keyOf(keys)
	if err != nil {
		return nil, err
	}
	principal, err := c.Principal(ctx)
	if err != nil || principal == "" {
		return nil, errors.Join(errPrincipal, err)
	}
	locks, err := c.Keys(ctx, c.method, message)
	if err != nil {
		return nil, errors.Join(errKeys, err)
	}
	if c.request, err = requestOf(c.method, principal, key, message); err != nil {
		return nil, err
	}
	opts := []guard.Option{guard.Wait(c.Wait), guard.MaxAnswer(c.MaxAnswer), guard.Encode(codec)}
	for _, lock := range locks {
		opts = append(opts, guard.Also(lock))
	}
	return opts, nil
}

// run has the handler answer.
func (c *served) run(ctx context.Context, req any) (proto.Message, error) {
	c.after, c.stream = nil, nil
	if outer := grpc.ServerTransportStreamFromContext(ctx); outer != nil {
		c.stream = &stream{ServerTransportStream: outer}
		ctx = grpc.NewContextWithServerTransportStream(ctx, c.stream)
	}
	answer, err := c.next(context.WithValue(ctx, servedKey{}, c), req)
	if err != nil {
		c.failed = &handlerError{err}
		return nil, c.failed
	}
	message, ok := answer.(proto.Message)
	if !ok {
		return nil, errMessage
	}
	return message, nil
}

// isHandlers reports whether err is the handler's error alone. It is false if err also has the
// outcome of the call: the lock was lost, or another node of a cluster has served the call.
func (c *served) isHandlers(err error) bool {
	if c.failed == nil || !errors.Is(err, c.failed) {
		return false
	}
	return !errors.Is(err, guard.ErrLost) && !errors.Is(err, guard.ErrDuplicate) && !errors.Is(err, guard.ErrMismatch)
}

// servedKey is the key of the call in a handler's context.
type servedKey struct{}

// AfterCommit makes f run when the call's transaction is known to be committed, before the
// answer is sent. Functions run in the order of the calls. f does not run for repeats, nor if
// the process dies before. Outside of a guarded call's handler AfterCommit does nothing.
func AfterCommit(ctx context.Context, f func()) {
	if c, ok := ctx.Value(servedKey{}).(*served); ok {
		c.after = append(c.after, f)
	}
}
