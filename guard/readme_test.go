package guard_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadme checks that the Go code in the README is code of the examples,
// which are compiled and run.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	wantNil(t, err)
	examples, err := os.ReadFile("example_test.go")
	wantNil(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 {
		t.Fatal("the README has no Go code")
	}
	for _, b := range blocks {
		if !strings.Contains(string(examples), b[1]) {
			t.Errorf("not in example_test.go:\n%s", b[1])
		}
	}
}
