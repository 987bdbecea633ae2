package teststack

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Pair is a PostgreSQL with a synchronous standby, of one test's own. Its nodes are 0,
// which takes writes at first, and 1.
type Pair struct {
	own  *servers
	dsns [2]string
}

// Standby brings up a pair and has it stopped when the test ends. It is an extra server,
// as in [Postgres]: where there is one pair, there may be another.
func Standby(tb testing.TB, name string) *Pair {
	tb.Helper()
	extra(tb, "BELAY_STANDBY_DSNS", "standby")
	p := &Pair{own: newStack(tb, name)}
	p.own.Stack(tb, "up", "standby")
	copy(p.dsns[:], strings.Fields(p.own.settings(tb)["BELAY_STANDBY_DSNS"]))
	return p
}

// DSN returns the URL of the database on a node.
func (p *Pair) DSN(node int) string { return p.dsns[node] }

// Addr returns the address of a node, host:port.
func (p *Pair) Addr(tb testing.TB, node int) string {
	tb.Helper()
	u, err := url.Parse(p.dsns[node])
	if err != nil {
		tb.Fatal("BELAY_STANDBY_DSNS are no URLs")
	}
	return u.Host
}

// Run has scripts/stack do it with a node: kill, pause, resume, start or promote.
func (p *Pair) Run(tb testing.TB, command string, node int) {
	tb.Helper()
	p.own.Stack(tb, command, nodeName(node))
}

// Heal brings back both nodes, one as the standby of the other.
func (p *Pair) Heal(tb testing.TB) {
	tb.Helper()
	p.own.Stack(tb, "heal")
}

// Swap has each of the dead nodes take the place of the other, and its address.
func (p *Pair) Swap(tb testing.TB) {
	tb.Helper()
	at := func(name string) string { return filepath.Join(p.own.dir, name) }
	writer, err := os.ReadFile(at("standby.writer"))
	if err != nil {
		tb.Fatal(err)
	}
	other := map[string]string{nodeName(0): nodeName(1), nodeName(1): nodeName(0)}[strings.TrimSpace(string(writer))]
	for _, move := range [][2]string{{nodeName(0), "swapped"}, {nodeName(1), nodeName(0)}, {"swapped", nodeName(1)}} {
		if err := os.Rename(at(move[0]), at(move[1])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.WriteFile(at("standby.writer"), []byte(other+"\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func nodeName(node int) string { return [2]string{"standby-1", "standby-2"}[node] }
