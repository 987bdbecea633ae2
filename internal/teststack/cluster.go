package teststack

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/portrange"
)

// servers is a stack of one test's own, whose servers may be killed and paused:
// see scripts/stack.
type servers struct {
	env  []string
	name string
	dir  string
	port int
}

// Env are the variables by which scripts/stack finds these servers.
func (s *servers) Env() []string {
	return []string{"BELAY_STACK=" + s.name, "BELAY_STACK_PORT=" + strconv.Itoa(s.port)}
}

// newStack prepares a stack on free ports and has it stopped when the test ends.
func newStack(tb testing.TB, name string) *servers {
	tb.Helper()
	name = fmt.Sprintf("%s-%d", name, os.Getpid())
	port, reserved, err := portrange.Reserve()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = reserved.Close() })
	s := &servers{name: name, port: port, dir: filepath.Join(root(), ".stack", name)}
	s.env = append(os.Environ(), s.Env()...)
	s.own(tb)
	tb.Cleanup(func() {
		s.Stack(tb, "down")
		if !tb.Failed() { // else its logs are of use
			_ = os.RemoveAll(s.dir)
		}
	})
	return s
}

// own notes whose stack it is. A test that is killed cleans nothing up: then
// scripts/test takes it down.
func (s *servers) own(tb testing.TB) {
	tb.Helper()
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "owner"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// Stack runs a command of scripts/stack and returns its output.
func (s *servers) Stack(tb testing.TB, args ...string) string {
	tb.Helper()
	cmd := exec.Command(filepath.Join(root(), "scripts", "stack"), args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("scripts/stack %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// settings returns the variables that scripts/stack env prints of these servers.
func (s *servers) settings(tb testing.TB) map[string]string {
	tb.Helper()
	settings := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^export (\w+)='([^']*)'$`).FindAllStringSubmatch(s.Stack(tb, "env"), -1) {
		settings[m[1]] = m[2]
	}
	return settings
}

// A Cluster is a Redis Cluster of one test's own.
type Cluster struct {
	*servers

	Addrs []string // of all nodes
}

// StartCluster brings up a Redis Cluster of 3 masters and 3 replicas, and has it
// stopped when the test ends. Like Redis it skips or fails without a stack.
func StartCluster(tb testing.TB, name string) *Cluster {
	tb.Helper()
	Redis(tb) // where there is a stack, there may be another
	c := &Cluster{servers: newStack(tb, name)}
	c.Stack(tb, "up", "redis")
	for n := 1; n <= 6; n++ {
		c.Addrs = append(c.Addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port+n)))
	}
	return c
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

// root is the folder of the module.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
