package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"
)

// A listed package is what go list says of it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// packagesOf returns the packages of a module by their folders, and the compiled form of them and of
// what they import by their paths.
func packagesOf(t *testing.T, mod string) (byFolder map[string]listed, compiled map[string]string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	list.Dir = filepath.Join(root, mod)
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	var words bytes.Buffer
	list.Stderr = &words
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &words)
	}
	byFolder, compiled = make(map[string]listed), make(map[string]string)
	for packages := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return byFolder, compiled
		} else if err != nil {
			t.Fatal(err)
		}
		byFolder[p.Dir], compiled[p.ImportPath] = p, p.Export
	}
}

// TestCompile: each mutant compiles.
func TestCompile(t *testing.T) {
	byModule := make(map[string][]mutant)
	for _, m := range table {
		if path.Ext(m.file) == ".go" {
			mod, _ := module(path.Dir(m.file))
			byModule[mod] = append(byModule[mod], m)
		}
	}
	for mod, mutants := range byModule {
		byFolder, compiled := packagesOf(t, mod)
		files := token.NewFileSet()
		imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
		for _, m := range mutants {
			dir, err := filepath.Abs(filepath.Join(root, path.Dir(m.file)))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.compiles(files, imports, byFolder[dir]); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// compiles returns the first error of the mutant's package.
func (m mutant) compiles(files *token.FileSet, imports types.Importer, p listed) error {
	if !slices.Contains(p.GoFiles, path.Base(m.file)) {
		return fmt.Errorf("%s is not compiled here", m.file)
	}
	var all []*ast.File
	for _, name := range p.GoFiles {
		var text any // nil is the file itself
		if name == path.Base(m.file) {
			mutated, err := m.apply()
			if err != nil {
				return err
			}
			text = mutated
		}
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	_, err := (&types.Config{Importer: imports}).Check(p.ImportPath, files, all, nil)
	return err
}
