package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// A Cluster is a Redis Cluster of the run's own, whose nodes it may kill.
type Cluster struct {
	Addrs []string // of all nodes

	root, name string
	port       int
}

// startCluster brings up 3 masters and 3 replicas by scripts/stack.
func startCluster(ctx context.Context, root string) (*Cluster, error) {
	port, err := freePorts(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{root: root, name: fmt.Sprintf("benchmark-%d", os.Getpid()), port: port}
	for n := 1; n <= 6; n++ {
		c.Addrs = append(c.Addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(port+n)))
	}
	if err := c.stack(ctx, "up", "redis"); err != nil {
		return nil, errors.Join(err, c.close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// stack runs a command of scripts/stack on the cluster. Its output is told only
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

// A Master is a master with the slots it serves.
type Master struct {
	Addr string
	pid  int
	from []int // first slot of each range
	to   []int
}

// Serves tells whether the slot of key is one of the master's.
func (m Master) Serves(ctx context.Context, key string) (bool, error) {
	client := single(m.Addr)
	defer client.Close()
	slot, err := client.ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return false, fmt.Errorf("ask for the slot of a key: %w", err)
	}
	for i := range m.from {
		if int(slot) >= m.from[i] && int(slot) <= m.to[i] {
			return true, nil
		}
	}
	return false, nil
}

// Kill ends the master as the kernel does it when memory runs out.
func (m Master) Kill() error {
	if err := syscall.Kill(m.pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the master %s: %w", m.Addr, err)
	}
	return nil
}

// Masters returns the masters, ready to be killed: it knows their processes.
func (c *Cluster) Masters(ctx context.Context) ([]Master, error) {
	client := single(c.Addrs[0])
	defer client.Close()
	slots, err := client.ClusterSlots(ctx).Result() //nolint:staticcheck // tells slots by master in one answer; no server drops it
	if err != nil {
		return nil, fmt.Errorf("ask for the masters: %w", err)
	}
	var masters []Master
	at := make(map[string]int)
	for _, s := range slots {
		if len(s.Nodes) == 0 {
			continue
		}
		addr := s.Nodes[0].Addr
		i, known := at[addr]
		if !known {
			i = len(masters)
			at[addr] = i
			pid, err := processOf(ctx, addr)
			if err != nil {
				return nil, err
			}
			masters = append(masters, Master{Addr: addr, pid: pid})
		}
		masters[i].from = append(masters[i].from, s.Start)
		masters[i].to = append(masters[i].to, s.End)
	}
	if len(masters) == 0 {
		return nil, errors.New("the redis cluster has no masters")
	}
	return masters, nil
}

// processOf returns the process id of a node.
func processOf(ctx context.Context, addr string) (int, error) {
	server, err := measure.RedisServer(ctx, addr)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(server["process_id"])
}

func single(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, DialTimeout: 2 * time.Second})
}

// freePorts returns the first of 40 ports that nobody uses, below those that
// the system gives out by itself.
func freePorts(ctx context.Context) (int, error) {
	const from, ranges, size = 22000, 50, 40
	for range 100 {
		if port := from + size*rand.IntN(ranges); free(ctx, port, size) {
			return port, nil
		}
	}
	return 0, errors.New("there are no free ports for a redis cluster from 22000 to 24000")
}

func free(ctx context.Context, first, size int) bool {
	var lc net.ListenConfig
	for port := first; port < first+size; port++ {
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
