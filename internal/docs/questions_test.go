package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The answers in architecture.md name functions and types that are in their files. With -v
// the test prints the line of each.
func TestTwelveQuestions(t *testing.T) {
	const page = "docs/architecture.md"
	_, table, _ := strings.Cut(pages(t)[page], "\n## Twelve questions\n")
	table, _, _ = strings.Cut(table, "\n## ")
	place := regexp.MustCompile("`([a-z0-9/_-]+\\.go)`: `([A-Za-z.]+)`")
	questions := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		if len(cells) != 2 || !strings.HasSuffix(cells[0], "?") {
			continue
		}
		questions++
		places := place.FindAllStringSubmatch(cells[1], -1)
		if len(places) == 0 {
			t.Errorf("%s: the answer to %q names no file and function, as `guard/verdict.go`: `judge`", page, cells[0])
		}
		for _, p := range places {
			file, name := p[1], p[2]
			if line := lineOf(file, name); line > 0 {
				t.Logf("%s %s:%d %s", cells[0], file, line, name)
				continue
			}
			t.Errorf("%s: the answer to %q names `%s`: `%s`, which is not there. Edit that row of the table; files that declare it: %s",
				page, cells[0], file, name, strings.Join(filesWith(t, name), ", "))
		}
	}
	if questions != 12 {
		t.Errorf("%s has %d questions with answers, want 12", page, questions)
	}
}

// lineOf returns the line of file on which a function, a method (Type.Method) or a type is
// declared, 0 if it is not there.
func lineOf(file, name string) int {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return 0
	}
	at := declaration(name).FindIndex(text)
	if at == nil {
		return 0
	}
	return 1 + strings.Count(string(text[:at[0]]), "\n")
}

func declaration(name string) *regexp.Regexp {
	if receiver, method, ok := strings.Cut(name, "."); ok {
		return regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?` + receiver + `(?:\[\w+\])?\) ` + method + `\b`)
	}
	return regexp.MustCompile(`(?m)^(?:func|type) ` + name + `\b`)
}

// filesWith returns the files that declare name, or "none".
func filesWith(t *testing.T, name string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		if file := strings.TrimPrefix(path, root+"/"); lineOf(file, name) > 0 {
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		return []string{"none"}
	}
	return files
}
