package main

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"

	"github.com/belaygo/belay/lock/etcdlock"
)

// dialEtcd returns a client whose requests are counted, and which is closed with o.
func (o *opened) dialEtcd() (*clientv3.Client, error) {
	var sent atomic.Int64
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   strings.Split(os.Getenv("BELAY_ETCD_ENDPOINTS"), ","),
		DialTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				sent.Add(1)
				return call(ctx, method, in, out, conn, opts...)
			}),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				sent.Add(1)
				return open(ctx, d, conn, method, opts...)
			}),
		},
	})
	if err != nil {
		return nil, err
	}
	o.requests = func(context.Context) (int64, error) { return sent.Load(), nil }
	o.closers = append(o.closers, func() { _ = client.Close() })
	return client, nil
}

func openEtcd(pidFiles []string) (*opened, error) {
	o := &opened{pidFiles: pidFiles}
	client, err := o.dialEtcd()
	if err != nil {
		return nil, err
	}
	e, err := etcdlock.New(client, etcdlock.Config{})
	if err != nil {
		o.close()
		return nil, err
	}
	return o.of(e), nil
}

// openEtcdMutex is the lock that etcd's client brings along.
func openEtcdMutex(pidFiles []string) (*opened, error) {
	o := &opened{pidFiles: pidFiles}
	client, err := o.dialEtcd()
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(client, concurrency.WithTTL(int(ttl/time.Second)))
	if err != nil {
		o.close()
		return nil, err
	}
	o.closers = append(o.closers, func() { _ = s.Close() })
	o.cycle = func(ctx context.Context, key, _ string) error {
		m := concurrency.NewMutex(s, key)
		if err := m.Lock(ctx); err != nil {
			return err
		}
		return m.Unlock(ctx)
	}
	return o, nil
}
