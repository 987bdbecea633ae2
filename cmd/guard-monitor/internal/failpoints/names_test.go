package failpoints_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// names returns the points in the Go files below root, by name with their place. Tests
// do not count. A call whose argument is not a string literal, or whose name occurs
// twice, is an error.
func names(root string) (map[string]string, error) {
	found := make(map[string]string)
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		return collect(files, file, found)
	})
	return found, err
}

func collect(files *token.FileSet, file *ast.File, found map[string]string) (err error) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || err != nil || !isPoint(call) {
			return err == nil
		}
		at := files.Position(call.Pos()).String()
		var name string
		if literal, ok := call.Args[0].(*ast.BasicLit); ok {
			name, _ = strconv.Unquote(literal.Value)
		}
		switch before, twice := found[name]; {
		case name == "":
			err = fmt.Errorf("%s: the name of a point is a string literal", at)
		case twice:
			err = fmt.Errorf("%s: point %q is also at %s", at, name, before)
		}
		found[name] = at
		return true
	})
	return err
}

func isPoint(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Point" || len(call.Args) != 1 {
		return false
	}
	pkg, ok := f.X.(*ast.Ident)
	return ok && pkg.Name == "fail"
}
