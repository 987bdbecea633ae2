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

// formats finds the names of what instances of two versions share: in files, by a pattern of their paths.
var formats = map[string]*regexp.Regexp{
	"*/schema/*.sql":                                regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`),
	"*/*/schema/*.sql":                              regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`),
	"internal/cloudevent/*.go":                      regexp.MustCompile(`= "(io\.github\.belaygo\.\w+\.v\d+)"`),
	"internal/rabbit/names.go":                      regexp.MustCompile(`= "(belay[.-][a-z.]+)"`),
	"cmd/guard-monitor/internal/intake/topology.go": regexp.MustCompile(`= "(belay\.[a-z.]+)"`),
	"relay/amqprelay/publisher.go":                  regexp.MustCompile(`"(belay-[a-z]+)"`),
	"lock/redislock/probe.go":                       regexp.MustCompile(`"(belay_\w+:)"`),
	"lock/redislock/names.go":                       regexp.MustCompile(`"(redisson_\w+:)`),
	"lock/*lock/config.go":                          regexp.MustCompile(`cmp\.Or\(c\.\w+, "(/?belay/lock/?)"\)`),
}

// beside is a call that names another key of a lock in Redis.
var beside = regexp.MustCompile(`beside\("(\w+)"`)

// TestFormats: docs/setup.md names each table, key, queue, header and type that two versions share, and
// says whether it may change.
func TestFormats(t *testing.T) {
	_, table, _ := strings.Cut(pages(t)["docs/setup.md"], "<!-- formats -->")
	table, _, found := strings.Cut(table, "<!-- /formats -->")
	if !found {
		t.Fatal("docs/setup.md has no table of formats")
	}
	listed := words(table)
	var names []string
	for pattern, name := range formats {
		n := namesIn(t, pattern, name)
		if len(n) == 0 {
			t.Errorf("%s has no name of a format", pattern)
		}
		names = append(names, n...)
	}
	for _, what := range namesIn(t, "lock/redislock/*.go", beside) {
		names = append(names, "belay_"+what+":")
	}
	for _, name := range names {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/setup.md does not say whether %s may change", name)
		}
	}
	if len(names) < 20 {
		t.Errorf("only %d formats found: %v", len(names), names)
	}
}

// namesIn returns what a pattern finds in files, each once.
func namesIn(t *testing.T, paths string, name *regexp.Regexp) (all []string) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(root), paths)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(file, "_test.go") && !slices.Contains(all, m[1]) {
				all = append(all, m[1])
			}
		}
	}
	return all
}
