package docs_test

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/testrepo"
)

// root is where the repository begins.
const root = "../.."

// pages are all Markdown files of the repository by their path from root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".github" || d.Name() == "target"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, root+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d pages found", len(found))
	}
	return found
}

var (
	fenced  = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	inline  = regexp.MustCompile("`[^`\n]+`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
)

// The README has the same links, code and errors in both languages, and at most 220 lines.
func TestLanguages(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| (`.+?`) \\|")
	type content struct{ links, code, rows []string }
	contentOf := func(page string) (c content) {
		text := pages(t)[page]
		if n := strings.Count(text, "\n"); n > 220 {
			t.Errorf("%s has %d lines, want at most 220", page, n)
		}
		for _, m := range fenced.FindAllStringSubmatch(text, -1) {
			c.code = append(c.code, m[2])
		}
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			c.rows = append(c.rows, m[1])
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if target := strings.Replace(m[1]+m[2], ".zh", "", 1); !strings.HasPrefix(target, "README") {
				c.links = append(c.links, target)
			}
		}
		slices.Sort(c.links)
		c.links = slices.Compact(c.links)
		return c
	}
	english, chinese := contentOf("README.md"), contentOf("README.zh-CN.md")
	for _, c := range []struct {
		what         string
		english, had []string
	}{{"links", english.links, chinese.links}, {"code", english.code, chinese.code}, {"errors", english.rows, chinese.rows}} {
		if len(c.english) == 0 || !slices.Equal(c.english, c.had) {
			t.Errorf("%s differ: %q, in Chinese %q", c.what, c.english, c.had)
		}
	}
}

// No page is empty. Every relative link leads to a file, and its anchor to a heading.
func TestLinks(t *testing.T) {
	all := pages(t)
	links := 0
	for path, text := range all {
		if strings.TrimSpace(text) == "" {
			t.Errorf("%s is empty", path)
		}
		prose := inline.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target, err := url.Parse(m[1] + m[2])
			if err != nil {
				t.Errorf("%s: link %s: %v", path, m[0], err)
				continue
			}
			if target.Scheme != "" {
				continue
			}
			links++
			to := path
			if target.Path != "" {
				to = filepath.Join(filepath.Dir(path), target.Path)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: link %s leads nowhere", path, m[0])
				continue
			}
			if target.Fragment != "" && !anchors(all[to])[target.Fragment] {
				t.Errorf("%s: link %s: %s has no such heading", path, m[0], to)
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links found", links)
	}
}

// anchors are the names that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		found[anchor(m[1])] = true
	}
	return found
}

func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// All Go code in the documentation is code of a file that is compiled and
// tested.
func TestCode(t *testing.T) {
	var tested strings.Builder
	for _, pattern := range []string{
		"*_test.go", "guard/*_test.go", "guard/*/*_test.go", "lock/*_test.go", "lock/*/*_test.go",
		"dbguard/*_test.go", "notify/*/*_test.go", "examples/*/*.go", "interop/redsync/*_test.go",
	} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tested.Write(text)
		}
	}
	for _, path := range []string{"README.md", "README.zh-CN.md", "docs/start.md", "docs/guide.md", "docs/migrating.md", "docs/setup.md", "docs/guard-monitor.md"} {
		blocks := 0
		for _, m := range fenced.FindAllStringSubmatch(pages(t)[path], -1) {
			if m[1] != "go" {
				continue
			}
			blocks++
			if !strings.Contains(tested.String(), m[2]) {
				t.Errorf("%s: this code is in no tested file:\n%s", path, m[2])
			}
		}
		if blocks == 0 {
			t.Errorf("%s has no Go code", path)
		}
	}
}

// Each DSN in the documentation and the examples has time limits: without them a
// statement that gets no answer keeps its key locked, and one that only waits for a row is
// cut off.
func TestDSNsHaveTimeouts(t *testing.T) {
	dsn := regexp.MustCompile(`\w@(?:tcp|unix)\([^)\s]*\)/[^\s"'` + "`" + `]*`)
	texts := pages(t)
	for _, pattern := range []string{"*.yml", "deploy/*/*.yml", "deploy/*.yaml", "*/*.go", "*/*/*.go", "examples/*/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			path := strings.TrimPrefix(file, root+"/")
			if strings.HasPrefix(path, "internal/") || strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "example_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
	}
	for _, page := range []string{"README.md", "README.zh-CN.md", "docs/failover.md"} {
		if !dsn.MatchString(texts[page]) {
			t.Errorf("%s shows no DSN", page)
		}
	}
	for path, text := range texts {
		for _, found := range dsn.FindAllString(text, -1) {
			_, query, _ := strings.Cut(found, "?")
			params, err := url.ParseQuery(query)
			if err != nil {
				t.Errorf("%s: DSN %s: %v", path, found, err)
			}
			for _, name := range []string{"timeout", "readTimeout", "writeTimeout"} {
				if d, err := time.ParseDuration(params.Get(name)); err != nil || d <= 0 {
					t.Errorf("%s: DSN %s has no %s", path, found, name)
				}
			}
			read, _ := time.ParseDuration(params.Get("readTimeout"))
			if s, err := strconv.Atoi(params.Get("innodb_lock_wait_timeout")); err != nil || time.Duration(s)*time.Second >= read {
				t.Errorf("%s: DSN %s has no innodb_lock_wait_timeout below its readTimeout", path, found)
			}
		}
	}
}

// The table of Doctor's findings is that of the code.
func TestDoctorTable(t *testing.T) {
	_, table, _ := strings.Cut(pages(t)["docs/setup.md"], "<!-- doctor -->")
	table, _, _ = strings.Cut(table, "<!-- /doctor -->")
	var rows []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 4 || !strings.HasPrefix(cells[0], "| `") {
			continue
		}
		if cells[2] == "" {
			t.Errorf("%s: why does it matter?", cells[0])
		}
		rows = append(rows, strings.Join([]string{strings.Trim(cells[0], "|` "), cells[1], strings.TrimSuffix(cells[3], " |")}, " | "))
	}
	var want []string
	for _, c := range doctor.All {
		want = append(want, fmt.Sprintf("%s | %s | %s", c.Name, c.Severity, c.Fix))
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the table is\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// Each test that a page names exists in the package that it is said to be of.
func TestNamedTests(t *testing.T) {
	name := regexp.MustCompile("`([a-z0-9]+)\\.(Test[A-Za-z]+)`")
	where := map[string]string{
		"lock": "lock", "redislock": "lock/redislock", "sqllock": "lock/sqllock", "quorumlock": "lock/quorumlock", "switchlock": "lock/switchlock", "etcdlock": "lock/etcdlock", "zklock": "lock/zklock", "guard": "guard", "promises": "guard/promises", "dbguard": "dbguard", "dbtx": "internal/dbtx", "dialect": "internal/dbtx/dialect",
		"e2e": "cmd/guard-monitor/internal/e2e", "chaos": "internal/chaos", "alerts": "cmd/guard-monitor/internal/alerts",
		"incident": "cmd/guard-monitor/internal/incident", "outbox": "notify/outbox", "once": "once", "rabbitmq": "notify/rabbitmq", "webhook": "notify/webhook",
		"inbox": "inbox", "drivers": "interop/drivers", "amqpinbox": "inbox/amqpinbox", "grpcguard": "grpcguard", "httpguard": "httpguard",
		"notify": "notify", "store": "cmd/guard-monitor/internal/store",
		"intake": "cmd/guard-monitor/internal/intake", "main": "cmd/guard-monitor", "docs": "internal/docs", "mutants": "internal/mutants",
	}
	for page, least := range map[string]int{"docs/guarantees.md": 30, "docs/engines.md": 5, "docs/setup.md": 5} {
		named := name.FindAllStringSubmatch(pages(t)[page], -1)
		if len(named) < least {
			t.Fatalf("%s names only %d tests", page, len(named))
		}
		for _, m := range named {
			if !testrepo.HasTest(t, where[m[1]], m[2]) {
				t.Errorf("%s: %s.%s does not exist", page, m[1], m[2])
			}
		}
	}
}

// The files that architecture.md names are there.
func TestNamedFiles(t *testing.T) {
	text := pages(t)["docs/architecture.md"]
	files := regexp.MustCompile("`([a-z0-9/_-]+\\.(?:go|lua))`").FindAllStringSubmatch(text, -1)
	if len(files) < 15 {
		t.Fatalf("only %d files named", len(files))
	}
	for _, m := range files {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("docs/architecture.md names %s, which is not there", m[1])
		}
	}
}

// The drawings of the README differ in their words alone: their shapes and figures are equal in both languages.
func TestDrawings(t *testing.T) {
	word := regexp.MustCompile(`>[^<]*\pL[^<]*</(?:text|title|desc)>`)
	for _, name := range []string{"belay", "chart"} {
		var shapes [2]string
		for i, suffix := range []string{".svg", ".zh.svg"} {
			text, err := os.ReadFile(filepath.Join(root, "docs", name+suffix))
			if err != nil {
				t.Fatal(err)
			}
			shapes[i] = word.ReplaceAllString(string(text), "")
		}
		if shapes[0] != shapes[1] {
			t.Errorf("docs/%s.svg and docs/%s.zh.svg differ in more than words", name, name)
		}
	}
}

// The README's chart shows figures of the pages that it leads to.
func TestChart(t *testing.T) {
	chart, err := os.ReadFile(filepath.Join(root, "docs/chart.svg"))
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	source := all["docs/benchmarks.md"] + all["docs/scale.md"]
	figures := regexp.MustCompile(`class="(?:v|big|big ok)"[^>]*>([^<]+)<`).FindAllStringSubmatch(string(chart), -1)
	if len(figures) < 9 {
		t.Fatalf("only %d figures found", len(figures))
	}
	for _, m := range figures {
		if !regexp.MustCompile(`(?:^|[^\d,])` + regexp.QuoteMeta(m[1]) + `(?:[^\d,]|$)`).MatchString(source) {
			t.Errorf("docs/chart.svg shows %s, which is on neither page", m[1])
		}
	}
}

// Every package that programs import shows how.
func TestExamples(t *testing.T) {
	for _, dir := range []string{
		"guard", "guard/guardotel", "guard/pgxguard", "guard/guardtest", "lock", "lock/locktest", "lock/memlock", "lock/redislock", "lock/sqllock", "lock/quorumlock", "lock/switchlock", "lock/etcdlock", "lock/zklock",
		"dbguard", "notify", "notify/outbox", "notify/rabbitmq", "notify/webhook",
	} {
		if !slices.ContainsFunc(testrepo.TestFunctions(t, dir), func(name string) bool { return strings.HasPrefix(name, "Example") }) {
			t.Errorf("package %s has no example", dir)
		}
	}
}
