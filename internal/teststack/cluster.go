package teststack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A Cluster is a Redis Cluster of one test's own, whose nodes may be killed and
// paused: see scripts/stack.
type Cluster struct {
	Addrs []string // of all nodes

	env  []string
	port int
}

// StartCluster brings up a Redis Cluster of 3 masters and 3 replicas, and has it
// stopped when the test ends. Like Redis it skips or fails without a stack.
func StartCluster(tb testing.TB, name string) *Cluster {
	tb.Helper()
	Redis(tb) // where there is a stack, there may be another
	c := &Cluster{port: freePorts(tb)}
	stack := fmt.Sprintf("%s-%d", name, os.Getpid())
	c.env = append(os.Environ(), "BELAY_STACK="+stack, "BELAY_STACK_PORT="+strconv.Itoa(c.port))
	tb.Cleanup(func() {
		c.Stack(tb, "down")
		if !tb.Failed() { // else its logs are of use
			_ = os.RemoveAll(filepath.Join(root(), ".stack", stack))
		}
	})
	c.Stack(tb, "up", "redis")
	for n := 1; n <= 6; n++ {
		c.Addrs = append(c.Addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port+n)))
	}
	return c
}

// Stack runs a command of scripts/stack on the cluster.
func (c *Cluster) Stack(tb testing.TB, args ...string) {
	tb.Helper()
	cmd := exec.Command(filepath.Join(root(), "scripts", "stack"), args...)
	cmd.Env = c.env
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("scripts/stack %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Node returns the name that scripts/stack has for the node at addr.
func (c *Cluster) Node(tb testing.TB, addr string) string {
	tb.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		tb.Fatal(err)
	}
	return "redis-" + strconv.Itoa(n-c.port)
}

// freePorts returns the first of 40 ports that nobody uses, below those that
// the system gives out by itself.
func freePorts(tb testing.TB) int {
	tb.Helper()
	const from, ranges, size = 20000, 50, 40
	for range 100 {
		if port := from + size*rand.IntN(ranges); free(port, size) {
			return port
		}
	}
	tb.Fatal("no free ports for a Redis Cluster")
	return 0
}

func free(first, size int) bool {
	for port := first; port < first+size; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// root is the folder of the module.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
