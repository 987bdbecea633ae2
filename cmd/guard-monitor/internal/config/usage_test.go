package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
)

var update = flag.Bool("update", false, "write the sample file and the table of settings")

// The sample file has every setting, and its values pass.
func TestSample(t *testing.T) {
	path := filepath.Join("..", "..", "..", "..", "deploy", "guard-monitor.yaml")
	if *update {
		if err := os.WriteFile(path, []byte(config.Sample()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != config.Sample() {
		t.Error("deploy/guard-monitor.yaml is not what Sample returns; run this test with -update")
	}
	live := regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAllString(string(have), "$1")
	for _, line := range []string{"    secret: SEC...\n", "    mentions: [\"13800000000\"]\n"} { // not for a webhook
		live = strings.Replace(live, line, "", 1)
	}
	if _, err := load(t, live, nil); err != nil {
		t.Errorf("the sample, uncommented: %v\n%s", err, live)
	}
	var help strings.Builder
	if err := config.Usage(&help); err != nil {
		t.Fatal(err)
	}
	for _, name := range config.OptionNames() {
		if strings.HasSuffix(name, "_file") {
			continue
		}
		flagged := strings.NewReplacer(".", "-", "_", "-").Replace(name)
		last := name[strings.LastIndexByte(name, '.')+1:]
		if !strings.Contains(help.String(), "\n  -"+flagged+" ") {
			t.Errorf("help lacks -%s", flagged)
		}
		if !regexp.MustCompile(`(?m)^# *` + last + `: `).Match(have) {
			t.Errorf("the sample lacks %s", name)
		}
	}
}

// The table of settings in the documentation is that of the code.
func TestDocumented(t *testing.T) {
	const begin, end = "<!-- settings -->\n", "<!-- /settings -->"
	path := filepath.Join("..", "..", "..", "..", "docs", "operations.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no table of settings", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+config.OptionTables()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != config.OptionTables() {
		t.Error("the settings in docs/operations.md are not those of the code; run this test with -update")
	}
}
