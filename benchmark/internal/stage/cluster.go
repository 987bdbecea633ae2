package stage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/internal/portrange"
)

// A Cluster is a Redis Cluster of the run's own, whose nodes it may kill.
type Cluster struct {
	Addrs []string // of all nodes

	root, name string
	port       int
}

// openCluster starts 3 masters and 3 replicas by scripts/stack.
func (s *Stage) openCluster(ctx context.Context) error {
	port, reserved, err := portrange.Reserve()
	if err != nil {
		return err
	}
	s.Later(func(context.Context) error { return reserved.Close() })
	c := &Cluster{root: s.Root, name: fmt.Sprintf("benchmark-%d", os.Getpid()), port: port}
	for n := 1; n <= 6; n++ {
		c.Addrs = append(c.Addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port+n)))
	}
	s.Cluster = c
	s.Later(c.close)
	return c.stack(ctx, "up", "redis")
}

// stack runs a command of scripts/stack on the cluster. Its output is shown only
// when it fails.
func (c *Cluster) stack(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.root, "scripts", "stack"), args...) //nolint:gosec // of this repository
	cmd.Env = append(os.Environ(), "BELAY_STACK="+c.name, "BELAY_STACK_PORT="+strconv.Itoa(c.port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/stack %s: %w\n%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), bytes.TrimSpace(out))
	}
	return nil
}

// Heal starts dead nodes and waits until the cluster is whole.
func (c *Cluster) Heal(ctx context.Context) error { return c.stack(ctx, "heal") }

func (c *Cluster) close(ctx context.Context) error {
	if err := c.stack(ctx, "down"); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(c.root, ".stack", c.name))
}

// A Master is a master with its process.
type Master struct {
	Addr string
	pid  int
}

// Kill ends the master as the kernel does it when memory runs out.
func (m Master) Kill() error {
	if err := syscall.Kill(m.pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the master %s: %w", m.Addr, err)
	}
	return nil
}

func (c *Cluster) client() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs})
}

// Masters returns the masters by address, ready to be killed: their processes are
// known.
func (c *Cluster) Masters(ctx context.Context) (all []Master, err error) {
	client := c.client()
	defer client.Close()
	var mu sync.Mutex
	err = client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		addr := node.Options().Addr
		pid, err := processOf(ctx, addr)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, Master{addr, pid})
		return err
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the redis cluster has no masters")
	}
	slices.SortFunc(all, func(a, b Master) int { return cmp.Compare(a.Addr, b.Addr) })
	return all, err
}

// FirstServed returns the index of the first key whose slot is one of the master's;
// -1 if none is.
func (c *Cluster) FirstServed(ctx context.Context, m Master, keys []string) (int, error) {
	client := c.client()
	defer client.Close()
	for i, key := range keys {
		node, err := client.MasterForKey(ctx, key)
		if err != nil {
			return -1, fmt.Errorf("find the master of a key: %w", err)
		}
		if node.Options().Addr == m.Addr {
			return i, nil
		}
	}
	return -1, nil
}

// processOf returns the process id of a node.
func processOf(ctx context.Context, addr string) (int, error) {
	server, err := measure.RedisServer(ctx, addr)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(server["process_id"])
}
