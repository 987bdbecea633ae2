package teststack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A Bed is a database of several nodes, of one test's own: each node may be killed, paused
// and started again by commands of scripts/stack.
type Bed struct {
	*servers

	Network bool // its nodes can be cut off from each other
}

// StartBed brings up servers of scripts/stack, in this order and with more variables of its
// environment, and has them stopped when the test ends. Under root each node has a network of
// its own, if that is asked for. Like Redis it skips or fails without a stack: where there is
// one, there may be another.
func StartBed(tb testing.TB, name string, network bool, env []string, servers ...string) *Bed {
	tb.Helper()
	Redis(tb)
	b := &Bed{newStack(tb, name), network && os.Getuid() == 0}
	b.env = append(b.env, env...)
	if b.Network {
		b.env = append(b.env, "BELAY_STACK_NETWORK=1")
	}
	for _, s := range servers {
		b.Stack(tb, "up", s)
	}
	return b
}

// PID returns the number of a node's process.
func (b *Bed) PID(tb testing.TB, node string) int {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "run", node+".pid"))
	if err != nil {
		tb.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		tb.Fatal(err)
	}
	return pid
}

// DSNs returns the DSNs, one of each node, in a variable that scripts/stack env prints.
func (b *Bed) DSNs(tb testing.TB, variable string) []string {
	tb.Helper()
	return strings.Fields(b.settings(tb)[variable])
}
