package cost_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// counts are what one operation costs.
type counts struct {
	operation   string
	sent        []request
	allocations int // 0 if they were not counted
	fsyncs      int // -1 if they were not counted
}

func (c counts) trips() int {
	return c.count(func(r request) bool { return !r.joins })
}

func (c counts) redisTrips() int {
	return c.count(func(r request) bool { return !r.joins && r.server == "redis" })
}

func (c counts) statements() int {
	return c.count(func(r request) bool { return r.server == "sql" })
}

func (c counts) commands() int {
	return c.count(func(r request) bool { return r.server == "redis" })
}

func (c counts) count(is func(request) bool) (n int) {
	for _, r := range c.sent {
		if is(r) {
			n++
		}
	}
	return n
}

// String returns the counts as a file of ceilings has them.
func (c counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d trips, %d statements, %d commands, %d allocations, %d fsyncs\n",
		c.operation, c.trips(), c.statements(), c.commands(), c.allocations, c.fsyncs)
	for _, r := range c.sent {
		fmt.Fprintf(&b, "\t%s\n", r)
	}
	return b.String()
}

func (r request) String() string {
	if r.joins {
		return "+" + r.server + " " + r.text
	}
	return r.server + " " + r.text
}

// differs returns what is wrong with the counts, "" if they are at their ceilings.
func (c counts) differs(ceiling counts) string {
	var wrong []string
	differ := func(name string, got, want int) {
		switch {
		case got > want:
			wrong = append(wrong, fmt.Sprintf("%d %s, at most %d", got, name, want))
		case got < want:
			wrong = append(wrong, fmt.Sprintf("%d %s, so the ceiling of %d can come down", got, name, want))
		}
	}
	differ("trips", c.trips(), ceiling.trips())
	differ("statements", c.statements(), ceiling.statements())
	differ("commands", c.commands(), ceiling.commands())
	if c.fsyncs >= 0 {
		differ("fsyncs", c.fsyncs, ceiling.fsyncs)
	}
	if c.allocations > 0 && !near(c.allocations, ceiling.allocations) {
		differ("allocations", c.allocations, ceiling.allocations)
	}
	if len(wrong) == 0 {
		return ""
	}
	for _, r := range added(ceiling.sent, c.sent) {
		wrong = append(wrong, "new: "+r.String())
	}
	for _, r := range added(c.sent, ceiling.sent) {
		wrong = append(wrong, "no more: "+r.String())
	}
	return fmt.Sprintf("%s\nIt sends, in this order:\n%s", strings.Join(wrong, "\n"), c)
}

// near reports whether allocations are at their ceiling but for one part in twenty: now and then
// a map or a buffer grows.
func near(allocations, ceiling int) bool {
	return math.Abs(float64(allocations-ceiling)) <= float64(ceiling)/20
}

// added returns the requests of now that are not among those before.
func added(before, now []request) (more []request) {
	left := make(map[request]int)
	for _, r := range before {
		left[r]++
	}
	for _, r := range now {
		if left[r]--; left[r] < 0 {
			more = append(more, r)
		}
	}
	return more
}

// path returns the file with the ceilings of a database.
func path(database string) string { return filepath.Join("testdata", database+".txt") }

// ceilings returns the ceilings of a database.
func ceilings(tb testing.TB, database string) (all []counts) {
	tb.Helper()
	text, err := os.ReadFile(path(database))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if sent, ok := strings.CutPrefix(line, "\t"); ok && len(all) > 0 {
			sent, joins := strings.CutPrefix(sent, "+")
			server, text, _ := strings.Cut(sent, " ")
			last := &all[len(all)-1]
			last.sent = append(last.sent, request{server, text, joins})
			continue
		}
		name, numbers, _ := strings.Cut(line, ": ")
		c := counts{operation: name}
		var trips, statements, commands int
		if _, err := fmt.Sscanf(numbers, "%d trips, %d statements, %d commands, %d allocations, %d fsyncs",
			&trips, &statements, &commands, &c.allocations, &c.fsyncs); err != nil {
			tb.Fatalf("%s: %q: %v", path(database), line, err)
		}
		all = append(all, c)
	}
	return all
}

// write makes the counts the ceilings of a database.
func write(tb testing.TB, database string, all []counts) {
	tb.Helper()
	var b strings.Builder
	for _, c := range all {
		b.WriteString(c.String())
	}
	if err := os.WriteFile(path(database), []byte(b.String()), 0o644); err != nil {
		tb.Fatal(err)
	}
}
