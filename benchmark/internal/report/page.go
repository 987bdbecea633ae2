package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/result"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// HTML returns the report of a run as one page that needs nothing else: the tables
// of the Markdown, and charts.
func HTML(r *result.Run) (string, error) {
	var b strings.Builder
	err := pageTemplate.Execute(&b, struct {
		*result.Run
		Sections []section
		Figures  []figure
	}{r, sections(r), figures(r)})
	if err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	return b.String(), nil
}
