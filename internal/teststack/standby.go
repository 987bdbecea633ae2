package teststack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Standby brings up a PostgreSQL with a synchronous standby. It is an extra server, as in
// [Postgres].
func Standby(tb testing.TB, name string) *Pair {
	tb.Helper()
	return newPair(tb, name, "standby", "BELAY_STANDBY_DSNS")
}

// Swap has each of the dead nodes take the place of the other, and its address.
func (p *Pair) Swap(tb testing.TB) {
	tb.Helper()
	at := func(name string) string { return filepath.Join(p.own.dir, name) }
	writer, err := os.ReadFile(at("standby.writer"))
	if err != nil {
		tb.Fatal(err)
	}
	other := map[string]string{p.node(0): p.node(1), p.node(1): p.node(0)}[strings.TrimSpace(string(writer))]
	for _, move := range [][2]string{{p.node(0), "swapped"}, {p.node(1), p.node(0)}, {"swapped", p.node(1)}} {
		if err := os.Rename(at(move[0]), at(move[1])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.WriteFile(at("standby.writer"), []byte(other+"\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
}
