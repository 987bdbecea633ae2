package etcdlock

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"

	"github.com/belaygo/belay/lock/lockengine"
)

// errClosed is returned when the engine has been closed.
var errClosed = fmt.Errorf("%w: etcdlock: closed", lockengine.ErrDenied)

// A call is one request. It notes whether the request was given to a connection: if it was not, no
// server can have executed it.
type call struct {
	ctx  context.Context
	peer *peer.Peer
}

type peerKey struct{}

func newCall(ctx context.Context) call {
	p := new(peer.Peer)
	return call{context.WithValue(ctx, peerKey{}, p), p}
}

// traced notes which server gets the request of a call, and what the answer shows of etcd's history.
type traced struct {
	pb.KVClient

	history *history
}

func with(ctx context.Context, opts []grpc.CallOption) []grpc.CallOption {
	if p, ok := ctx.Value(peerKey{}).(*peer.Peer); ok {
		opts = append(opts, grpc.Peer(p))
	}
	return opts
}

func (t traced) Range(ctx context.Context, in *pb.RangeRequest, opts ...grpc.CallOption) (*pb.RangeResponse, error) {
	before := t.history.now()
	res, err := t.KVClient.Range(ctx, in, with(ctx, opts)...)
	if err == nil {
		t.history.note(before, res.Header)
	}
	return res, err
}

func (t traced) DeleteRange(ctx context.Context, in *pb.DeleteRangeRequest, opts ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	before := t.history.now()
	res, err := t.KVClient.DeleteRange(ctx, in, with(ctx, opts)...)
	if err == nil {
		t.history.note(before, res.Header)
	}
	return res, err
}

func (t traced) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	before := t.history.now()
	res, err := t.KVClient.Txn(ctx, in, with(ctx, opts)...)
	if err == nil {
		t.history.note(before, res.Header)
	}
	return res, err
}

// err returns the error of a request, which says whether the request may have been executed.
func (c call) err(what string, err error) error {
	if err == nil {
		return nil
	}
	kind := classify(err)
	if errors.Is(kind, lockengine.ErrNoAnswer) && c.peer.Addr == nil {
		kind = lockengine.ErrNotSent
	}
	if end := c.ctx.Err(); end != nil && !errors.Is(err, end) {
		err = fmt.Errorf("%w: %w", end, err)
	}
	return fmt.Errorf("etcdlock: %s: %w: %w", what, kind, err)
}

// classify returns what the server's answer says of the request, or ErrNoAnswer. So it is for
// a server without space for more, too: the first request that it says so of is executed.
func classify(err error) error {
	switch {
	case isLeaseLost(err), is(err, rpctypes.ErrTooManyRequests, rpctypes.ErrNoLeader, rpctypes.ErrNotCapable):
		return lockengine.ErrNotSent
	case is(err, rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken,
		rpctypes.ErrAuthOldRevision, rpctypes.ErrUserNotFound), code(err) == codes.PermissionDenied, code(err) == codes.Unauthenticated:
		return lockengine.ErrDenied
	case is(err, rpctypes.ErrRequestTooLarge):
		return lockengine.ErrUnusable
	}
	return lockengine.ErrNoAnswer
}

// isLeaseLost reports whether the server knows no such lease: it has executed nothing.
func isLeaseLost(err error) bool { return is(err, rpctypes.ErrLeaseNotFound) }

// is reports whether err is one of the server's.
func is(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(rpctypes.Error(err), target) {
			return true
		}
	}
	return false
}

func code(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](rpctypes.Error(err)); ok {
		return e.Code()
	}
	return codes.Unknown
}
