package docs_test

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An exporter collects the lines of one package.
type exporter struct {
	t     *testing.T
	at    string // the folder
	fset  *token.FileSet
	lines []string
}

// exportedLines returns a line for each name that a package exports, for each field, and for each
// method, also of types that are aliases of internal ones.
func exportedLines(t *testing.T, dir string) []string {
	t.Helper()
	e := &exporter{t: t, at: dir, fset: token.NewFileSet()}
	for _, file := range parse(t, e.fset, dir) {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				e.function(d)
			case *ast.GenDecl:
				e.declaration(file, d)
			}
		}
	}
	slices.Sort(e.lines)
	return slices.Compact(e.lines)
}

func (e *exporter) add(parts ...string) {
	name := strings.TrimPrefix(filepath.Base(e.at), ".")
	if e.at != "internal/docs/testdata/"+name {
		name = strings.TrimSuffix("belay/"+e.at, "/.")
	}
	e.lines = append(e.lines, name+", "+strings.Join(parts, ""))
}

func (e *exporter) print(node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, e.fset, node); err != nil {
		e.t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func (e *exporter) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	if d.Recv == nil {
		e.add("func ", d.Name.Name, e.signature(d.Type))
		return
	}
	if of := d.Recv.List[0].Type; ast.IsExported(baseName(of)) {
		e.method(e.print(of), d)
	}
}

func (e *exporter) method(of string, d *ast.FuncDecl) {
	e.add("method (", of, ") ", d.Name.Name, e.signature(d.Type))
}

func (e *exporter) signature(f *ast.FuncType) string {
	return strings.TrimPrefix(e.print(f), "func")
}

// baseName returns the name of the type of a receiver.
func baseName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return baseName(x.X)
	case *ast.IndexExpr:
		return baseName(x.X)
	case *ast.IndexListExpr:
		return baseName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func (e *exporter) declaration(file *ast.File, d *ast.GenDecl) {
	counts := false // by iota
	for n, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				e.typeSpec(file, s)
			}
		case *ast.ValueSpec:
			counts = counts && len(s.Values) == 0 || len(s.Values) > 0 && strings.Contains(e.print(s.Values[0]), "iota")
			at := ""
			if counts {
				at = " // " + strconv.Itoa(n)
			}
			e.values(d.Tok, s, at)
		}
	}
}

func (e *exporter) values(kind token.Token, s *ast.ValueSpec, comment string) {
	for n, name := range s.Names {
		if !name.IsExported() {
			continue
		}
		line := kind.String() + " " + name.Name
		if s.Type != nil {
			line += " " + e.print(s.Type)
		}
		if n < len(s.Values) && (kind == token.CONST || s.Type == nil && !strings.HasPrefix(name.Name, "Err")) { // the text of an error may change
			line += " = " + e.print(s.Values[n])
		}
		e.add(line, comment)
	}
}

func (e *exporter) typeSpec(file *ast.File, s *ast.TypeSpec) {
	head := "type " + s.Name.Name
	if s.TypeParams != nil {
		var params []string
		for _, p := range s.TypeParams.List {
			for _, name := range p.Names {
				params = append(params, name.Name+" "+e.print(p.Type))
			}
		}
		head += "[" + strings.Join(params, ", ") + "]"
	}
	switch x := s.Type.(type) {
	case *ast.StructType:
		e.add(head, " struct")
		e.promoted(s.Name.Name, file, x)
		e.members(head+" struct, ", x.Fields)
	case *ast.InterfaceType:
		e.add(head, " interface")
		e.members(head+" interface, ", x.Methods)
	default:
		if s.Assign.IsValid() {
			head += " ="
			e.alias(file, s)
		}
		e.add(head, " ", e.print(s.Type))
	}
}

// members adds fields, or methods.
func (e *exporter) members(head string, list *ast.FieldList) {
	for _, field := range list.List {
		if name := baseName(field.Type); len(field.Names) == 0 && (name == "" || ast.IsExported(name)) {
			e.add(head, e.print(field.Type))
		}
		for _, name := range field.Names {
			if !name.IsExported() {
				continue
			}
			if f, is := field.Type.(*ast.FuncType); is && strings.Contains(head, " interface, ") {
				e.add(head, name.Name, e.signature(f))
			} else {
				e.add(head, name.Name, " ", e.print(field.Type))
			}
		}
	}
}

// promoted adds the methods that a struct has of what it embeds and does not export.
func (e *exporter) promoted(name string, file *ast.File, x *ast.StructType) {
	for _, field := range x.Fields.List {
		dir, embedded := e.typeAt(file, field.Type)
		if len(field.Names) > 0 || embedded == "" || ast.IsExported(embedded) && dir == e.at {
			continue
		}
		within := &exporter{t: e.t, at: dir, fset: e.fset}
		for _, other := range parse(e.t, e.fset, dir) {
			for _, decl := range other.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Recv != nil && d.Name.IsExported() && baseName(d.Recv.List[0].Type) == embedded {
						e.method(name, d)
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						ts, is := spec.(*ast.TypeSpec)
						if !is || ts.Name.Name != embedded {
							continue
						}
						st, is := ts.Type.(*ast.StructType)
						if !is { // it has what the other type has
							st = &ast.StructType{Fields: &ast.FieldList{List: []*ast.Field{{Type: ts.Type}}}}
						}
						within.promoted(name, other, st)
					}
				}
			}
		}
		for _, line := range within.lines {
			_, what, _ := strings.Cut(line, ", ")
			e.add(what)
		}
	}
}

// typeAt returns the folder and the name of a type, if it is one of this package or of an internal one.
func (e *exporter) typeAt(file *ast.File, x ast.Expr) (dir, name string) {
	if star, is := x.(*ast.StarExpr); is {
		x = star.X
	}
	of, is := x.(*ast.SelectorExpr)
	if !is {
		return e.at, baseName(x)
	}
	if dir = imported(file, e.print(of.X)); !strings.Contains(dir, "internal/") {
		return "", ""
	}
	return dir, of.Sel.Name
}

// alias adds the methods and fields of the type behind an alias, if that is not exported elsewhere.
func (e *exporter) alias(file *ast.File, s *ast.TypeSpec) {
	dir, name := e.typeAt(file, s.Type)
	if name == "" {
		return
	}
	for _, other := range parse(e.t, e.fset, dir) {
		for _, decl := range other.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && d.Name.IsExported() && baseName(d.Recv.List[0].Type) == name {
					of := strings.Replace(e.print(d.Recv.List[0].Type), name, s.Name.Name, 1)
					e.method(of, d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, is := spec.(*ast.TypeSpec); is && ts.Name.Name == name {
						renamed := *ts
						renamed.Name = s.Name
						e.typeSpec(other, &renamed)
					}
				}
			}
		}
	}
}

// imported returns the folder of a package of this repository that a file imports by a name, else "".
func imported(file *ast.File, name string) string {
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		dir, ours := strings.CutPrefix(path, "github.com/belaygo/belay/")
		if err == nil && ours && (spec.Name == nil && filepath.Base(path) == name || spec.Name != nil && spec.Name.Name == name) {
			return dir
		}
	}
	return ""
}
