package docs_test

import (
	"database/sql"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
)

// A part is a row of docs/parts.md.
type part struct {
	imports, tables []string
}

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	linkText = regexp.MustCompile(`^\[(.*)\]\(\S+\)$`)
)

// partsOf returns the rows of docs/parts.md by what the user has.
func partsOf(t *testing.T) map[string]part {
	t.Helper()
	_, table, _ := strings.Cut(pages(t)["docs/parts.md"], "<!-- parts -->")
	table, _, _ = strings.Cut(table, "<!-- /parts -->")
	rows := make(map[string]part)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		m := linkText.FindStringSubmatch(cells[0])
		if m == nil || len(cells) != 5 {
			continue
		}
		rows[m[1]] = part{imports: words(cells[1]), tables: words(cells[3])}
	}
	return rows
}

// words returns what is code in a cell, sorted.
func words(cell string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// check compares a row with a program that has run, and with what it has left in its database.
func (p part) check(t *testing.T, program, dsn string) {
	t.Helper()
	if got := importsOf(t, program); !slices.Equal(got, p.imports) {
		t.Errorf("it imports %q, docs/parts.md has %q", got, p.imports)
	}
	if got := tablesOf(t, dsn); !slices.Equal(got, p.tables) {
		t.Errorf("it has the tables %q, docs/parts.md has %q", got, p.tables)
	}
}

// importsOf returns the packages of Belay that a walk imports.
func importsOf(t *testing.T, program string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "testdata/walks/"+program+"walk/walk.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if path, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "github.com/belaygo/"); ok {
			all = append(all, strings.TrimPrefix(path, "belay/"))
		}
	}
	slices.Sort(all)
	return all
}

// tablesOf returns the tables of Belay in a database.
func tablesOf(t *testing.T, dsn string) (all []string) {
	t.Helper()
	driver, schema := "mysql", "database()"
	if strings.HasPrefix(dsn, "postgres:") {
		driver, schema = "pgx", "current_schema()"
	}
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rows, err := pool.QueryContext(t.Context(), "SELECT table_name FROM information_schema.tables WHERE table_schema = "+schema+" AND table_name LIKE 'belay%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// docs/parts.md names each table that Belay creates, and what its packages link.
func TestParts(t *testing.T) {
	page := pages(t)["docs/parts.md"]
	schemas, err := filepath.Glob(filepath.Join(root, "*", "*", "schema", "mysql.sql"))
	if err != nil {
		t.Fatal(err)
	}
	once, err := filepath.Glob(filepath.Join(root, "*", "schema", "mysql.sql"))
	if err != nil {
		t.Fatal(err)
	}
	created := regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`)
	n := 0
	for _, file := range append(schemas, once...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range created.FindAllStringSubmatch(string(text), -1) {
			n++
			if !strings.Contains(page, "`"+m[1]+"`") {
				t.Errorf("docs/parts.md does not name the table %s", m[1])
			}
		}
	}
	if n < 11 {
		t.Errorf("only %d tables found", n)
	}
	all := linked(t)
	const belay = "github.com/belaygo/belay"
	for pkg, want := range map[string]string{
		belay + "/lock": "", belay + "/lock/memlock": "", belay + "/lock/sqllock": "", belay + "/lock/quorumlock": "",
		belay + "/lock/switchlock": "", belay + "/lock/redislock": "go-redis", belay + "/guard": "gorm", belay + "/httpguard": "gorm",
		belay + "/inbox": "gorm", belay + "/relay": "gorm", belay: "amqp go-redis gorm",
	} {
		if got, found := all[pkg]; got != want || !found {
			t.Errorf("package %s links %q, want %q as docs/parts.md says", pkg, got, want)
		}
	}
}

// linked returns the large modules that each package of Belay links.
func linked(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{range .Deps}}{{.}} {{end}}", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		var large []string
		for _, m := range [][2]string{{"amqp", "github.com/rabbitmq/amqp091-go"}, {"go-redis", "github.com/redis/go-redis/v9"}, {"gorm", "gorm.io/gorm"}} {
			if slices.Contains(strings.Fields(line), m[1]) {
				large = append(large, m[0])
			}
		}
		all[strings.Fields(line)[0]] = strings.Join(large, " ")
	}
	return all
}
