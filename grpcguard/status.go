package grpcguard

import (
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
)

// problems are those that have a reason which the client can do something about, and those
// of the program itself, which no repeat cures. The first that fits decides. All others are Unavailable: calling
// again is safe.
var problems = []struct {
	err         error
	code        codes.Code
	reason, say string
}{
	{errNoKey, codes.InvalidArgument, "KEY_MISSING", "this call needs the metadata idempotency-key, with the same value when it is made again"},
	{errBadKey, codes.InvalidArgument, "KEY_INVALID", "idempotency-key is to be one string of 1 to 255 printable ASCII characters"},
	{errKeys, codes.InvalidArgument, "", "the request is not valid"},
	{guard.ErrTxControl, codes.Internal, "", "internal error"},
	{guard.ErrBusy, codes.Aborted, "", "the call is being served: make it again later, with the same key"},
	{guard.ErrMismatch, codes.InvalidArgument, "KEY_MISMATCH", "idempotency-key was used for another call: a new call needs a new key"},
	{guard.ErrExists, codes.FailedPrecondition, "ROW_EXISTS", "the call was not served: what it would insert is there already"},
	{guard.ErrDuplicate, codes.AlreadyExists, "ANSWER_FORGOTTEN", "the call was served before, and its answer is no longer kept"},
	{errUnknownType, codes.AlreadyExists, "ANSWER_FORGOTTEN", "the call was served before, and its answer can't be read"},
	{errPrincipal, codes.Internal, "", "internal error"},
	{errMessage, codes.Internal, "", "internal error"},
	{guard.ErrNested, codes.Internal, "", "internal error"},
	{lock.ErrInvalidKey, codes.Internal, "", "internal error"},
	{guard.ErrAnswer, codes.Internal, "", "internal error"},
}

// problemOf returns what an error is to the client.
func problemOf(err error) (code codes.Code, reason, say string) {
	for _, known := range problems {
		if errors.Is(err, known.err) {
			return known.code, known.reason, known.say
		}
	}
	if exists(err) {
		return problemOf(guard.ErrExists)
	}
	return codes.Unavailable, "", "make the call again later, with the same key"
}

// statusOf returns the client's status for an error, and logs the details that it
// leaves out.
func (c *served) statusOf(err error) error {
	if c.isHandlers(err) {
		return c.failed.error
	}
	code, reason, say := problemOf(err)
	if code == codes.Internal || code == codes.Unavailable {
		c.Logger.Error("a guarded call has failed", "method", c.method, "request", c.request.Key(), "code", code, "error", err)
	}
	var detail protoadapt.MessageV1
	switch {
	case reason != "":
		detail = &errdetails.ErrorInfo{Reason: reason, Domain: "belay"}
	case code == codes.Aborted, code == codes.Unavailable:
		detail = &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)}
	default:
		return status.Error(code, say)
	}
	s := status.New(code, say)
	if with, err := s.WithDetails(detail); err == nil {
		s = with
	}
	return s.Err()
}

// exists reports whether a row that no Keys names was there. A stale one may be read again by a repeat.
func exists(err error) bool {
	c, ok := errors.AsType[*dbguard.ConflictError](err)
	return ok && guard.ResultOf(err) == "conflict" && c.Kind == dbguard.Duplicate
}
