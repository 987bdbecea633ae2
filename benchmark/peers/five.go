package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/wait"
)

// five are five single Redis servers of this program, which save nothing.
type five struct {
	dir      string
	addrs    []string
	pidFiles []string
	servers  []*exec.Cmd
}

func startFive(ctx context.Context) (*five, error) {
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return nil, err
	}
	f := &five{dir: dir}
	for range 5 {
		if err := f.start(ctx); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

func (f *five) start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		return err
	}
	server := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", f.dir, "--save", "", "--appendonly", "no") //nolint:gosec // a free port
	if err := server.Start(); err != nil {
		return err
	}
	file := filepath.Join(f.dir, port+".pid")
	f.addrs, f.servers, f.pidFiles = append(f.addrs, addr), append(f.servers, server), append(f.pidFiles, file)
	if err := os.WriteFile(file, []byte(strconv.Itoa(server.Process.Pid)), 0o600); err != nil {
		return err
	}
	return awaitRedis(ctx, addr)
}

func awaitRedis(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if wait.Sleep(ctx, 10*time.Millisecond, nil) != nil {
			return err
		}
	}
}

func (f *five) close() {
	for _, server := range f.servers {
		_ = server.Process.Kill()
		_ = server.Wait()
	}
	_ = os.RemoveAll(f.dir)
}

// redsync is the peer's lock on all five.
func (f *five) redsync(context.Context) (*opened, error) {
	o := &opened{pidFiles: f.pidFiles}
	var pools []redsyncpool.Pool
	for _, addr := range f.addrs {
		client := redis.NewClient(&redis.Options{Addr: addr})
		o.closers = append(o.closers, func() { _ = client.Close() })
		pools = append(pools, goredis.NewPool(client))
	}
	all := redsync.New(pools...)
	o.cycle = func(ctx context.Context, key, _ string) error {
		m := all.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1))
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		ok, err := m.UnlockContext(ctx)
		if err == nil && !ok {
			err = errors.New("not released")
		}
		return err
	}
	return o.counting(f.addrs, "set"), nil
}
