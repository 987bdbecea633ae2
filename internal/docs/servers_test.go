package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	databasesLine = regexp.MustCompile(`(?m)^databases=\((.*)\)$`)
	extraServers  = regexp.MustCompile(`(?s)\nextra_servers=\((.*?)\)`)
)

// TestTableOfServers: each database that scripts/stack can start is one of scripts/servers, and a row
// of the table in docs/setup.md.
func TestTableOfServers(t *testing.T) {
	script := scriptFile(t, "servers")
	var databases []string
	if m := databasesLine.FindStringSubmatch(script); m != nil {
		databases = strings.Fields(m[1])
	}
	var rows []string
	_, table, _ := strings.Cut(pages(t)["docs/setup.md"], "<!-- servers -->")
	table, _, _ = strings.Cut(table, "<!-- /servers -->")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if m := quoted.FindStringSubmatch(cells[0]); m != nil && len(cells) == 3 && m[0] == cells[0] && !strings.Contains(m[1], "=") {
			rows = append(rows, m[1])
		}
	}
	if len(databases) == 0 || !slices.Equal(rows, databases) {
		t.Errorf("docs/setup.md has the servers %v, scripts/servers %v", rows, databases)
	}
	extra := extraServers.FindStringSubmatch(scriptFile(t, "lib/common.sh"))
	for name := range strings.FieldsSeq(extra[1]) {
		if !slices.Contains(databases, name) && !slices.Contains([]string{"rabbitmq4", "etcd", "zookeeper"}, name) {
			t.Errorf("scripts/servers does not know the database %s", name)
		}
	}
}

func scriptFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
