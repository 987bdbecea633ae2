package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The Makefile lists each module, so that none is left out of tests, lint and tidy.
func TestModules(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^MODULES := (.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no MODULES")
	}
	listed := strings.Fields(string(line[1]))
	slices.Sort(listed)

	var found []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		found = append(found, dir)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	if !slices.Equal(listed, found) {
		t.Errorf("MODULES has %v, there are %v", listed, found)
	}
}
