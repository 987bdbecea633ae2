package teststack

import (
	"fmt"
	"net/url"
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
