// Package report makes reports out of the JSON of runs.
package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/result"
)

// Markdown returns the report of a run as Markdown.
func Markdown(r *result.Run) string {
	var b strings.Builder
	for _, s := range sections(r) {
		if s.Text != "" {
			fmt.Fprintf(&b, "%s\n\n", s.Text)
		}
		for i, cells := range s.Rows {
			row(&b, cells)
			if i == 0 {
				row(&b, rule(cells))
			}
		}
		if s.Rows != nil {
			fmt.Fprintln(&b)
		}
	}
	if !r.Complete {
		fmt.Fprintf(&b, "**The run was not complete.**\n\n")
	}
	escape := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "- **Fault**: %s\n", escape.Replace(p))
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "%s, %s. %s. Command: `%s`\n", r.Started.Format("2 January 2006 15:04 UTC"), r.Machine, r.Machine.Software(), r.Command)
	return b.String()
}

func row(b *strings.Builder, cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

// rule is what follows the head of a table: it aligns columns of words to the left.
func rule(head []string) (cells []string) {
	for i, name := range head {
		if i == 0 || slices.Contains([]string{"operation", ""}, name) {
			cells = append(cells, "---")
		} else {
			cells = append(cells, "---:")
		}
	}
	return cells
}
