package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exportedFile has all that is exported, a line each. Whoever changes a line that a release has
// breaks users; BELAY_API=write writes the file anew.
const exportedFile = "testdata/api.txt"

// TestAPI: what is exported is what the file says.
func TestAPI(t *testing.T) {
	var got []string
	for _, dir := range publicPackages(t) {
		got = append(got, exportedLines(t, dir)...)
	}
	if os.Getenv("BELAY_API") == "write" {
		if err := os.WriteFile(exportedFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(exportedFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("is gone: %s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("is new: %s", line)
		}
	}
	if t.Failed() {
		t.Log("if that is meant: BELAY_API=write go test ./internal/docs -run TestAPI, and CHANGELOG")
	}
}

// TestExportedLines: the kinds of what can be exported, and what is not.
func TestExportedLines(t *testing.T) {
	want := strings.Split(strings.TrimSpace(`
fixture, const A = iota // 0
fixture, const B // 1
fixture, func F[T any](x T, rest ...int) (n int, err error)
fixture, method (*G[T]) M()
fixture, method (Alias) Seen() error
fixture, method (S) Promoted()
fixture, type Alias = shown
fixture, type Alias struct
fixture, type G[T any] struct
fixture, type I interface
fixture, type I interface, M(a int) error
fixture, type I interface, fmt.Stringer
fixture, type S struct
fixture, type S struct, *G[int]
fixture, type S struct, A int
fixture, type S struct, B int
fixture, type S struct, F func(a int) error
fixture, var E error
fixture, var ErrV
fixture, var V = errors.New("v")`), "\n")
	if got := exportedLines(t, "internal/docs/testdata/fixture"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// publicPackages returns the folders of packages that programs of users import.
func publicPackages(t *testing.T) (dirs []string) {
	t.Helper()
	notLibrary := []string{"benchmark", "cmd", "deploy", "examples", "interop", "scripts", "tools", "docs"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		dir, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if dir != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "internal" || d.Name() == "testdata" || slices.Contains(notLibrary, dir)) {
			return filepath.SkipDir
		}
		dirs = append(dirs, dir)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// parse returns the files of a package, without tests; none of a program or of a folder without Go.
func parse(t *testing.T, fset *token.FileSet, dir string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if file.Name.Name != "main" {
			files = append(files, file)
		}
	}
	return files
}
