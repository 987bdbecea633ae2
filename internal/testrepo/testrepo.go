// Package testrepo reads this repository for tests that compare its parts: what a page or a
// table names with what is there. Folders and pages are named from the root. Only tests
// import it.
package testrepo

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Root returns the path of the root, which is above the folder of each test.
func Root(tb testing.TB) string {
	tb.Helper()
	for dir := "."; ; dir = filepath.Join("..", dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/belaygo/belay\n")) {
			return dir
		}
		if at, err := filepath.Abs(dir); err != nil || at == filepath.Dir(at) {
			tb.Fatalf("no folder above has the go.mod of the root: %v", err)
		}
	}
}

var function = regexp.MustCompile(`(?m)^func (\w+)\(`)

// functions has what TestFunctions has returned, by the folder: a table names the same folder
// in many of its rows.
var functions sync.Map

// TestFunctions returns the names of the functions in the test files of a folder: tests,
// examples and all others, but no methods. The caller must not change them.
func TestFunctions(tb testing.TB, folder string) []string {
	tb.Helper()
	if names, known := functions.Load(folder); known {
		return names.([]string)
	}
	var names []string
	paths, err := filepath.Glob(filepath.Join(Root(tb), folder, "*_test.go"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		for _, match := range function.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	functions.Store(folder, names)
	return names
}

// HasTest reports whether the test files of a folder have a function of this name.
func HasTest(tb testing.TB, folder, name string) bool {
	tb.Helper()
	return slices.Contains(TestFunctions(tb, folder), name)
}

// Says reports whether a page has a text, wherever the page breaks its lines.
func Says(tb testing.TB, page, text string) bool {
	tb.Helper()
	all, err := os.ReadFile(filepath.Join(Root(tb), page))
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Contains(strings.Join(strings.Fields(string(all)), " "), text)
}
