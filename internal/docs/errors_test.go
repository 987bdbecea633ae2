package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testrepo"
)

var (
	errorRow  = regexp.MustCompile("(?m)^\\| (`\\*?\\w+\\.\\w+`) \\| .+ \\| .+ \\| (`.+`) \\|$")
	errorName = regexp.MustCompile("`\\*?(\\w+)\\.(\\w+)`")
	errorLine = regexp.MustCompile(`^belay/\S+, (?:var (Err\w+)|method \(\*?(\w+)\) Error\(\) string)`)
	testName  = regexp.MustCompile("`(\\w+)\\.(Test\\w+)`")
)

// TestErrors: mistakes.md explains each exported error and type of errors, and names a test that
// meets it.
func TestErrors(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/mistakes.md"))
	if err != nil {
		t.Fatal(err)
	}
	var explained, exported []string
	for _, row := range errorRow.FindAllStringSubmatch(string(page), -1) {
		for _, name := range errorName.FindAllStringSubmatch(row[1], -1) {
			explained = append(explained, name[1]+"."+name[2])
		}
		for _, name := range testName.FindAllStringSubmatch(row[2], -1) {
			if !meets(t, name[1], name[2], row[1]) {
				t.Errorf("%s names none of %s", name[0], row[1])
			}
		}
	}
	for _, dir := range publicPackages(t) {
		for _, line := range exportedLines(t, dir) {
			if m := errorLine.FindStringSubmatch(line); m != nil {
				exported = append(exported, filepath.Base(dir)+"."+m[1]+m[2])
			}
		}
	}
	slices.Sort(explained)
	slices.Sort(exported)
	if !slices.Equal(explained, exported) {
		t.Errorf("mistakes.md explains %v, exported are %v", explained, exported)
	}
}

// meets reports whether there is such a test, in a file that names one of the errors.
func meets(t *testing.T, pkg, test, errs string) bool {
	t.Helper()
	for _, dir := range publicPackages(t) {
		if filepath.Base(dir) != pkg || !testrepo.HasTest(t, dir, test) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, body, is := strings.Cut(string(text), "func "+test+"(")
			if !is {
				continue
			}
			body, _, _ = strings.Cut(body, "\n}\n")
			return slices.ContainsFunc(errorName.FindAllStringSubmatch(errs, -1), func(name []string) bool { return strings.Contains(body, name[2]) })
		}
	}
	return false
}
