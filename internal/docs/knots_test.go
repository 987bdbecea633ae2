package docs_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testrepo"
)

// mostKnotted is how many files of a package may all reach each other: more cannot be read one by one.
const mostKnotted = 10

// knotted are the packages with more. They may only get fewer.
var knotted = map[string]int{
	"cmd/guard-monitor":                   17,
	"cmd/guard-monitor/internal/incident": 19,
	"cmd/guard-monitor/internal/store":    13,
	"internal/model":                      18,
	"internal/sim/simdb":                  21,
	"lock/locktest":                       11,
}

// TestKnots: a file uses another one if it names what that declares. The files of a package that
// reach each other in this way are few. Package guard once had 37 of 65, by a field and two functions.
func TestKnots(t *testing.T) {
	t.Parallel()
	root := testrepo.Root(t)
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case d.Name() == "testdata" || dir != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		}
		name, _ := filepath.Rel(root, dir)
		most := max(mostKnotted, knotted[filepath.ToSlash(name)])
		if knot := largestKnot(t, dir); len(knot) > most {
			t.Errorf("%s: %d files reach each other, at most %d may: %s", name, len(knot), most, strings.Join(knot, " "))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// noImports leaves what other packages declare unknown: the files of one are looked at.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// largestKnot returns the files of the package in dir that reach each other.
func largestKnot(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) <= mostKnotted {
		return nil
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}, FakeImportC: true}
	pkg, _ := conf.Check(dir, fset, files, &info) // unknown packages are errors
	fileOf := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	uses := make(map[string][]string)
	for id, o := range info.Uses {
		if _, imported := o.(*types.PkgName); o.Pkg() == pkg && !imported && fileOf(id.Pos()) != fileOf(o.Pos()) {
			uses[fileOf(id.Pos())] = append(uses[fileOf(id.Pos())], fileOf(o.Pos()))
		}
	}
	reach := make(map[string]map[string]bool)
	for file := range uses {
		seen, next := make(map[string]bool), slices.Clone(uses[file])
		for len(next) > 0 {
			f := next[len(next)-1]
			next = next[:len(next)-1]
			if !seen[f] {
				seen[f] = true
				next = append(next, uses[f]...)
			}
		}
		reach[file] = seen
	}
	var largest []string
	for file, reached := range reach {
		var knot []string
		for other := range reached {
			if reach[other][file] {
				knot = append(knot, other)
			}
		}
		if len(knot) > len(largest) {
			largest = knot
		}
	}
	slices.Sort(largest)
	return largest
}
