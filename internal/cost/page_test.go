package cost_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testrepo"
)

// databases are those of the table, in its order.
var databases = []string{"mariadb", "mysql", "postgres"}

const (
	page   = "docs/scale.md"
	titles = "| operation | trips | of these to Redis | statements | commands | fsyncs | allocations |\n"
)

// TestPage: the table in docs has the ceilings.
func TestPage(t *testing.T) {
	held := make(map[string][]counts)
	for _, database := range databases {
		held[database] = ceilings(t, database)
	}
	_, got, _ := cutTable(t)
	if want := table(held); got != want {
		t.Errorf("%s has\n%s\nbut the ceilings are\n%s", page, got, want)
	}
}

// table returns the counts as Markdown. Where databases differ, a cell has the count of each.
func table(all map[string][]counts) string {
	var b strings.Builder
	b.WriteString(titles + "|---|---:|---:|---:|---:|---:|---:|\n")
	for _, o := range operations {
		fmt.Fprintf(&b, "| %s |", o.name)
		for _, figure := range []func(counts) int{
			counts.trips, counts.redisTrips, counts.statements, counts.commands,
			func(c counts) int { return c.fsyncs }, func(c counts) int { return c.allocations },
		} {
			fmt.Fprintf(&b, " %s |", cell(all, o.name, figure))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func cell(all map[string][]counts, operation string, figure func(counts) int) string {
	var each []string
	for _, database := range databases {
		for _, c := range all[database] {
			if c.operation == operation {
				each = append(each, strconv.Itoa(figure(c)))
			}
		}
	}
	if len(each) > 0 && len(slices.Compact(slices.Clone(each))) == 1 {
		return each[0]
	}
	return strings.Join(each, " / ")
}

// cutTable returns the table of the page, with what is before and behind it.
func cutTable(t *testing.T) (before, table, behind string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testrepo.Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), titles)
	if !found {
		t.Fatalf("%s has no table with the line %q", page, titles)
	}
	table = titles
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		table += line
	}
	return before, table, strings.TrimPrefix(titles+rest, table)
}

func writePage(t *testing.T) {
	t.Helper()
	held := make(map[string][]counts)
	for _, database := range databases {
		held[database] = ceilings(t, database)
	}
	before, _, behind := cutTable(t)
	path := filepath.Join(testrepo.Root(t), page)
	if err := os.WriteFile(path, []byte(before+table(held)+behind), 0o644); err != nil {
		t.Fatal(err)
	}
}
