package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notLibrary are folders whose packages no service imports.
var notLibrary = regexp.MustCompile(`^(cmd|benchmark|examples|interop|lock/locktest|internal/(test\w+|chaos|docs|gormsuite|lockhistory|model|mutants|sim|wild))(/|$)`)

// architecture.md names each package of the library that starts a goroutine.
func TestGoroutinesAreListed(t *testing.T) {
	_, section, _ := strings.Cut(pages(t)["docs/architecture.md"], "## What runs without a caller\n")
	section, _, _ = strings.Cut(section, "\n## ")
	starts := regexp.MustCompile(`(?m)^\s*go \w|\.Go\(|AfterFunc\(.*func\(`)
	found := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path != root && strings.HasPrefix(d.Name(), ".") || notLibrary.MatchString(name)):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if starts.Match(text) {
			found[filepath.Dir(name)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages start goroutines", len(found))
	}
	for name := range found {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/architecture.md does not list the goroutines of %s", name)
		}
	}
}
