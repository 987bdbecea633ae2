package teststack

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// A Pair is a database and its replica, of one test's own. Its nodes are 0, which takes writes
// at first, and 1.
type Pair struct {
	own    *servers
	server string // its name in scripts/stack
	dsns   [2]string
}

// newPair brings up a pair and has it stopped when the test ends. It skips or fails without
// the variable of a server: where there is one pair, there may be another.
func newPair(tb testing.TB, name, server, variable string) *Pair {
	tb.Helper()
	extra(tb, variable, server)
	p := &Pair{own: newStack(tb, name), server: server}
	p.own.Stack(tb, "up", server)
	copy(p.dsns[:], strings.Fields(p.own.settings(tb)[variable]))
	return p
}

// DSN returns the DSN of the database on a node.
func (p *Pair) DSN(node int) string { return p.dsns[node] }

// Addr returns the address of a node, host:port.
func (p *Pair) Addr(tb testing.TB, node int) string {
	tb.Helper()
	if u, err := url.Parse(p.dsns[node]); err == nil && u.Host != "" {
		return u.Host
	}
	config, err := mysql.ParseDSN(p.dsns[node])
	if err != nil {
		tb.Fatalf("the DSNs of %s are none", p.server)
	}
	return config.Addr
}

// Run has scripts/stack do it with a node: kill, pause, resume, start or promote.
func (p *Pair) Run(tb testing.TB, command string, node int) {
	tb.Helper()
	p.own.Stack(tb, command, p.node(node))
}

// Heal brings back both nodes, one as the replica of the other.
func (p *Pair) Heal(tb testing.TB) {
	tb.Helper()
	p.own.Stack(tb, "heal")
}

func (p *Pair) node(node int) string { return fmt.Sprint(p.server, "-", node+1) }

// BackUp stops both nodes, copies their data, and starts them again. restore stops them, and starts
// them with the copy.
func (p *Pair) BackUp(tb testing.TB) (restore func()) {
	tb.Helper()
	copyOf := func(node int) string { return filepath.Join(p.own.dir, p.node(node)+".backup") }
	data := func(node int) string { return filepath.Join(p.own.dir, p.node(node)) }
	stopped := func(f func(node int)) {
		tb.Helper()
		for _, node := range []int{1, 0} {
			p.Run(tb, "kill", node)
			f(node)
		}
		for node := range p.dsns {
			p.Run(tb, "start", node)
		}
	}
	stopped(func(node int) { p.copyFiles(tb, data(node), copyOf(node)) })
	return func() {
		tb.Helper()
		stopped(func(node int) {
			if err := os.RemoveAll(data(node)); err != nil {
				tb.Fatal(err)
			}
			p.copyFiles(tb, copyOf(node), data(node))
		})
	}
}

// copyFiles copies a folder, with the owners of its files.
func (p *Pair) copyFiles(tb testing.TB, from, to string) {
	tb.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		tb.Fatalf("copy %s: %v: %s", from, err, out)
	}
}
