package grpcguard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/grpcguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

type Account struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// bank is a server with one account. Its methods are Pay and Refund, of an Int64Value each,
// and the stream Watch.
type bank struct {
	t     *testing.T
	db    *gorm.DB
	guard *guardtest.Guard
	cfg   grpcguard.Config
	log   *bytes.Buffer
	ran   atomic.Int64                    // handlers
	last  atomic.Pointer[context.Context] // of a call, outside of the guard
	conn  *grpc.ClientConn
}

func newBank(t *testing.T) *bank {
	t.Helper()
	db := testdb.OpenSQLite(t, t.TempDir()+"/bank.db")
	testdb.WantNil(t, db.AutoMigrate(&Account{}))
	testdb.WantNil(t, once.Migrate(bg, db))
	testdb.WantNil(t, db.Create(&Account{ID: 7, Cents: 1000}).Error)
	log := new(bytes.Buffer)
	return &bank{
		t: t, db: db, guard: guardtest.New(t, db), log: log,
		cfg: grpcguard.Config{
			Match: func(method string) bool { return method == pay || method == refund },
			Principal: func(ctx context.Context) (string, error) {
				return strings.Join(metadata.ValueFromIncomingContext(ctx, "user"), ","), nil
			},
			Logger: slog.New(slog.NewTextHandler(log, nil)),
		},
	}
}

const (
	pay    = "/test.Bank/Pay"
	refund = "/test.Bank/Refund"
	look   = "/test.Bank/Look"
)

type handler func(ctx context.Context, cents int64) (proto.Message, error)

// description is of a service whose methods all call one handler.
func (b *bank) description(h handler) *grpc.ServiceDesc {
	method := func(name string) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.Int64Value)
			if err := decode(in); err != nil {
				return nil, err
			}
			return through(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Bank/" + name}, func(ctx context.Context, req any) (any, error) {
				b.ran.Add(1)
				return h(ctx, req.(*wrapperspb.Int64Value).Value)
			})
		}}
	}
	return &grpc.ServiceDesc{
		ServiceName: "test.Bank", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{method("Pay"), method("Refund"), method("Look")},
		Streams: []grpc.StreamDesc{{StreamName: "Watch", ServerStreams: true}},
	}
}

func (b *bank) serve(h handler) {
	b.t.Helper()
	through, err := grpcguard.UnaryServerInterceptor(b.guard.Guard, b.cfg)
	testdb.WantNil(b.t, err)
	note := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		b.last.Store(&ctx)
		return next(ctx, req)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(note, through))
	server.RegisterService(b.description(h), b)
	testdb.WantNil(b.t, grpcguard.Check(server, b.cfg))
	l, err := new(net.ListenConfig).Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	testdb.WantNil(b.t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	b.t.Cleanup(func() {
		server.GracefulStop()
		testdb.WantNil(b.t, <-served)
	})
	b.conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testdb.WantNil(b.t, err)
	b.t.Cleanup(func() { _ = b.conn.Close() })
}

// withdraw takes the cents and answers with what is left.
func withdraw(ctx context.Context, cents int64) (proto.Message, error) {
	a := Account{ID: 7}
	err := guard.Update(&a, func(a *Account) error { a.Cents -= cents; return nil }).Run(ctx, guard.Tx(ctx))
	return wrapperspb.Int64(a.Cents), err
}

// got is an answer.
type got struct {
	left     int64
	replayed bool
	err      error
}

// call calls a method: data are metadata, name, value, name, value.
func (b *bank) call(method string, cents int64, data ...string) got {
	b.t.Helper()
	return b.callWith(b.t.Context(), method, cents, data...)
}

func (b *bank) callWith(ctx context.Context, method string, cents int64, data ...string) got {
	var header metadata.MD
	var out wrapperspb.Int64Value
	ctx = metadata.AppendToOutgoingContext(ctx, append([]string{"user", "eve"}, data...)...)
	err := b.conn.Invoke(ctx, method, wrapperspb.Int64(cents), &out, grpc.Header(&header))
	return got{out.Value, len(header.Get("idempotent-replayed")) > 0, err}
}

func (g got) want(t *testing.T, left int64, replayed bool) {
	t.Helper()
	if g.err != nil || g.left != left || g.replayed != replayed {
		t.Errorf("got %+v, want %d left, replayed %v", g, left, replayed)
	}
}

// wantCode wants an error with the reason of an ErrorInfo, or with RetryInfo, or neither.
func (g got) wantCode(t *testing.T, code codes.Code, detail string) {
	t.Helper()
	found := ""
	for _, d := range status.Convert(g.err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			found = d.GetReason()
		case *errdetails.RetryInfo:
			found = "again in " + d.GetRetryDelay().AsDuration().String()
		}
	}
	if status.Code(g.err) != code || found != detail {
		t.Errorf("got %v with %q, want %v with %q", g.err, found, code, detail)
	}
}

func (b *bank) wantRan(ran, cents int64) {
	b.t.Helper()
	var a Account
	testdb.WantNil(b.t, b.db.Take(&a, 7).Error)
	if b.ran.Load() != ran || a.Cents != cents {
		b.t.Errorf("the handler ran %d times and %d cents are left, want %d and %d", b.ran.Load(), a.Cents, ran, cents)
	}
}

func key(k string) []string { return []string{"idempotency-key", k} }

func TestRepeatGetsTheStoredAnswer(t *testing.T) {
	b := newBank(t)
	b.serve(withdraw)
	b.call(pay, 10, key("k")...).want(t, 990, false)
	b.call(pay, 5, key("other")...).want(t, 985, false)
	for range 3 {
		b.call(pay, 10, key("k")...).want(t, 990, true)
	}
	b.call(refund, 10, key("k")...).want(t, 975, false) // another method
	b.call(pay, 10, "idempotency-key", "k", "user", "bob").want(t, 965, false)
	b.wantRan(4, 965)
}

func TestKeys(t *testing.T) {
	b := newBank(t)
	b.cfg.Keys = func(_ context.Context, _ string, m proto.Message) ([]string, error) {
		if m.(*wrapperspb.Int64Value).Value < 0 {
			return nil, errors.New("negative")
		}
		return []string{"account:7"}, nil
	}
	b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
		a := Account{ID: 7}
		err := b.guard.Apply(ctx, "account:7", guard.Update(&a, func(a *Account) error { a.Cents -= cents; return nil }))
		return wrapperspb.Int64(a.Cents), err
	})
	b.call(pay, 10, key("k")...).want(t, 990, false)
	for name, values := range map[string][]string{
		"KEY_MISSING":  nil,
		"KEY_INVALID":  {"idempotency-key", "a", "idempotency-key", "b"},
		"KEY_MISMATCH": key("k"),
	} {
		b.call(pay, 11, values...).wantCode(t, codes.InvalidArgument, name)
	}
	b.call(pay, 10, key("")...).wantCode(t, codes.InvalidArgument, "KEY_INVALID")
	b.call(pay, 10, key(strings.Repeat("k", 256))...).wantCode(t, codes.InvalidArgument, "KEY_INVALID")
	b.call(pay, -1, key("negative")...).wantCode(t, codes.InvalidArgument, "")
	b.wantRan(1, 990)
}

func TestRepeatWhileTheFirstRuns(t *testing.T) {
	b := newBank(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
		close(entered)
		<-leave
		return withdraw(ctx, cents)
	})
	first := make(chan got)
	go func() { first <- b.callWith(bg, pay, 10, key("k")...) }()
	<-entered
	b.call(pay, 10, key("k")...).wantCode(t, codes.Aborted, "again in 1s")
	close(leave)
	(<-first).want(t, 990, false)
	b.call(pay, 10, key("k")...).want(t, 990, true)
	b.wantRan(1, 990)
}

func TestWait(t *testing.T) {
	b := newBank(t)
	b.cfg.Wait = time.Minute
	entered, leave := make(chan struct{}), make(chan struct{})
	b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
		close(entered)
		<-leave
		return withdraw(ctx, cents)
	})
	answers := make(chan got, 2)
	call := func() { answers <- b.callWith(bg, pay, 10, key("k")...) }
	go call()
	<-entered
	go call()
	close(leave)
	if one, two := <-answers, <-answers; one.left != 990 || two.left != 990 || one.replayed == two.replayed {
		t.Errorf("got %+v and %+v, want one answer and its replay", one, two)
	}
	b.wantRan(1, 990)
}

func TestAnswerIsNoLongerKept(t *testing.T) {
	b := newBank(t)
	b.serve(withdraw)
	b.call(pay, 10, key("unknown")...).want(t, 990, false)
	testdb.WantNil(t, b.db.Exec("UPDATE belay_answer SET body = CAST(REPLACE(CAST(body AS TEXT), 'Int64Value', 'Int65Value') AS BLOB)").Error)
	b.call(pay, 10, key("unknown")...).wantCode(t, codes.AlreadyExists, "ANSWER_FORGOTTEN")
	testdb.WantNil(t, b.db.Exec("DELETE FROM belay_answer").Error)
	b.call(pay, 10, key("unknown")...).wantCode(t, codes.AlreadyExists, "ANSWER_FORGOTTEN")
	b.wantRan(1, 990)
}

func TestHandlersErrorIsNotStored(t *testing.T) {
	b := newBank(t)
	fail := true
	b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
		answer, err := withdraw(ctx, cents)
		if fail {
			return nil, status.Error(codes.ResourceExhausted, "come back tomorrow")
		}
		return answer, err
	})
	b.call(pay, 10, key("k")...).wantCode(t, codes.ResourceExhausted, "")
	b.wantRan(1, 1000)
	fail = false
	b.call(pay, 10, key("k")...).want(t, 990, false)
	b.wantRan(2, 990)
}

func TestRefusal(t *testing.T) {
	declined := status.New(codes.FailedPrecondition, "declined").Proto()
	for name, answer := range map[string]proto.Message{"response": wrapperspb.Int64(-1), "status": declined} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t)
			b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
				_, err := withdraw(ctx, cents)
				grpcguard.AfterCommit(ctx, func() { t.Error("nothing was committed") })
				return nil, errors.Join(err, guard.Refuse(answer))
			})
			for n := range 2 {
				got := b.call(pay, 10, key("k")...)
				if name == "status" {
					got.wantCode(t, codes.FailedPrecondition, "")
				} else {
					got.want(t, -1, n > 0)
				}
				b.wantRan(1, 1000)
			}
		})
	}
}

func TestLostLock(t *testing.T) {
	b := newBank(t)
	b.guard.LoseAll(true)
	b.serve(withdraw)
	b.call(pay, 10, key("k")...).want(t, 990, false) // it is found gone at its release only
	b.guard.LoseAll(false)
	b.call(pay, 10, key("k")...).want(t, 990, true)
	testdb.WantNil(t, b.guard.Close(bg))
	b.call(pay, 10, key("new")...).wantCode(t, codes.Unavailable, "again in 1s")
	b.wantRan(1, 990)
	if !strings.Contains(b.log.String(), "a guarded call has failed") {
		t.Errorf("the log has %q", b.log)
	}
}

func TestInternal(t *testing.T) {
	b := newBank(t)
	b.cfg.MaxAnswer = 10
	b.serve(withdraw)
	b.call(pay, 10, key("long")...).wantCode(t, codes.Internal, "")
	b.wantRan(1, 1000)
}

func TestPrincipalIsRequired(t *testing.T) {
	for _, cause := range []error{nil, errors.New("no token of eve")} {
		b := newBank(t)
		b.cfg.Principal = func(context.Context) (string, error) { return "", cause }
		b.serve(withdraw)
		answer := b.call(pay, 10, key("k")...)
		answer.wantCode(t, codes.Internal, "")
		if strings.Contains(answer.err.Error(), "eve") {
			t.Errorf("the client is told %v", answer.err)
		}
		b.wantRan(0, 1000)
	}
}

func TestClientLeaves(t *testing.T) {
	b := newBank(t)
	entered, leave, committed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
		close(entered)
		<-leave
		grpcguard.AfterCommit(ctx, func() { close(committed) })
		return withdraw(ctx, cents)
	})
	ctx, cancel := context.WithCancel(bg)
	first := make(chan got)
	go func() { first <- b.callWith(ctx, pay, 10, key("k")...) }()
	<-entered
	cancel()
	(<-first).wantCode(t, codes.Canceled, "")
	<-(*b.last.Load()).Done()
	close(leave)
	select {
	case <-committed:
	case <-time.After(time.Minute):
		t.Fatal("the call ended with its client")
	}
	testwait.Until(t, "the repeat gets the answer", func() bool { return b.call(pay, 10, key("k")...).err == nil })
	b.wantRan(1, 990)
}

func TestOtherCallsPass(t *testing.T) {
	b := newBank(t)
	b.cfg.Optional = true
	b.serve(func(ctx context.Context, _ int64) (proto.Message, error) {
		_, guarded := guard.Request(ctx)
		if guarded || guard.Tx(ctx) != nil {
			return wrapperspb.Int64(1), nil
		}
		return wrapperspb.Int64(2), nil
	})
	b.call(look, 0, key("k")...).want(t, 2, false)
	b.call(pay, 0).want(t, 2, false)
	b.call(pay, 0, key("k")...).want(t, 1, false)
}

func TestCheck(t *testing.T) {
	b := newBank(t)
	server := grpc.NewServer()
	server.RegisterService(b.description(withdraw), b)
	for want, match := range map[string]func(string) bool{
		"Match is nil":      nil,
		"which is a stream": func(method string) bool { return strings.HasSuffix(method, "/Watch") },
		"has no method":     func(string) bool { return false },
	} {
		cfg := b.cfg
		cfg.Match = match
		if err := grpcguard.Check(server, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := grpcguard.UnaryServerInterceptor(nil, b.cfg); err == nil {
		t.Error("a nil guard is taken")
	}
	for _, cfg := range []grpcguard.Config{
		{Match: b.cfg.Match}, {Match: b.cfg.Match, Principal: b.cfg.Principal, Wait: -1},
		{Match: b.cfg.Match, Principal: b.cfg.Principal, MaxAnswer: -1},
	} {
		if _, err := grpcguard.UnaryServerInterceptor(b.guard.Guard, cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// TestHeadersAreOfTheAnswer: headers and trailers that a handler sets reach the client with its
// answer, and not at all if its transaction is not committed.
func TestHeadersAreOfTheAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		maxAnswer int
		err       error
		arrive    bool
	}{
		"committed":        {0, nil, true},
		"refused":          {0, guard.Refuse(wrapperspb.Int64(-1)), true},
		"handler's error":  {0, status.Error(codes.ResourceExhausted, "come back tomorrow"), true},
		"cannot be stored": {10, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t)
			b.cfg.MaxAnswer = tt.maxAnswer
			b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
				testdb.WantNil(t, grpc.SetHeader(ctx, metadata.Pairs("order", "16")))
				testdb.WantNil(t, grpc.SendHeader(ctx, metadata.Pairs("order", "17")))
				if grpc.SendHeader(ctx, nil) == nil || grpc.SetHeader(ctx, metadata.Pairs("late", "1")) == nil {
					t.Error("headers are sent twice")
				}
				testdb.WantNil(t, grpc.SetTrailer(ctx, metadata.Pairs("sum", "1")))
				if method, ok := grpc.Method(ctx); !ok || method != pay {
					t.Errorf("the method is %q", method)
				}
				answer, err := withdraw(ctx, cents)
				return answer, errors.Join(err, tt.err)
			})
			var header, trailer metadata.MD
			ctx := metadata.AppendToOutgoingContext(t.Context(), "user", "eve", "idempotency-key", "k")
			err := b.conn.Invoke(ctx, pay, wrapperspb.Int64(10), new(wrapperspb.Int64Value), grpc.Header(&header), grpc.Trailer(&trailer))
			arrived := strings.Join(header.Get("order"), " ") == "16 17" && strings.Join(trailer.Get("sum"), " ") == "1"
			leaked := len(header.Get("order"))+len(trailer.Get("sum")) > 0
			if arrived != tt.arrive || leaked != tt.arrive || len(header.Get("late")) > 0 {
				t.Errorf("headers %v and trailers %v come with %v", header, trailer, err)
			}
		})
	}
}

type Receipt struct {
	ID int64
	No string `gorm:"size:64;uniqueIndex"`
}

// TestRowOfAnotherCall: a call whose handler meets a row that another call has made was not
// served, and its client is not told that it was.
func TestRowOfAnotherCall(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	testdb.WantNil(t, b.db.AutoMigrate(&Receipt{}))
	b.cfg.Keys = func(context.Context, string, proto.Message) ([]string, error) { return []string{"receipt:1"}, nil }
	b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
		return wrapperspb.Int64(cents), b.guard.Apply(ctx, "receipt:1", guard.Insert(&Receipt{No: "1"}))
	})
	call := func(key string, cents int64, want codes.Code) {
		t.Helper()
		ctx := metadata.AppendToOutgoingContext(bg, "idempotency-key", key, "user", "u")
		err := b.conn.Invoke(ctx, pay, wrapperspb.Int64(cents), new(wrapperspb.Int64Value))
		if got := status.Code(err); got != want {
			t.Errorf("key %s: %v, want %v", key, err, want)
		}
	}
	call("first", 10, codes.OK)
	call("second", 500, codes.FailedPrecondition)
	call("second", 500, codes.FailedPrecondition)
	testdb.WantNil(t, b.db.Delete(&Receipt{}, "no = ?", "1").Error)
	call("second", 500, codes.OK)
}

// TestOwnErrorOfTheHandler: what a handler returns of a call of its own reaches the client as it
// is, and says nothing of the call that is served.
func TestOwnErrorOfTheHandler(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.serve(func(context.Context, int64) (proto.Message, error) {
		return nil, fmt.Errorf("another service: %w", guard.ErrDuplicate)
	})
	ctx := metadata.AppendToOutgoingContext(bg, "idempotency-key", "k", "user", "u")
	err := b.conn.Invoke(ctx, pay, wrapperspb.Int64(1), new(wrapperspb.Int64Value))
	if s, _ := status.FromError(err); s.Code() != codes.Unknown || s.Message() != "another service: guard: done before" {
		t.Errorf("the client got %v, want the handler's error", err)
	}
}
