package docs_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/teststack"
)

// A walk is a program of testdata/walks: the section of the pages that it copies, the row of
// docs/parts.md that it stands for, and what it prints.
type walk struct {
	name, row, want string
}

var walks = []walk{
	{"readme", "", "25 done, 25 repeated\n25 of 50 items are left\n"},
	{"gorm", "GORM", "1 done, 49 repeated\n"},
	{"sql", "database/sql, or sqlx, bun or ent on it", "1 done, 49 repeated\n"},
	{"pgx", "pgx or sqlc", "1 done, 49 repeated\n"},
	{"http", "clients with an `Idempotency-Key`", "1 done, 49 repeated\n"},
	{"messages", "messages", "1 done, 49 repeated\n50 done, 0 repeated\n1 mail, 1 payment\n"},
	{"lock", "work that needs only a lock", "50 done, 0 repeated\n50 one after the other\n"},
	{"redsync", "redsync around a transaction", "50 done, 0 repeated\n50 done, 0 repeated\n0 of 1000 cents are left\n"},
	{"noredis", "a database, and no Redis", "1 done, 49 repeated\n"},
}

// TestWalks starts as a new user does: in an empty folder, with the lines of the README and of
// docs/start.md in a program that has the imports, a database and Redis. Fifty callers do the same
// at once. What a row of docs/parts.md says of the program is true.
func TestWalks(t *testing.T) {
	if testing.Short() {
		t.Skip("it links a program")
	}
	redis := "redis+cluster://" + strings.Join(teststack.Redis(t), ",")
	began := time.Now()
	shop, copied := newUser(t)
	t.Logf("%d programs in an empty folder, built after %.1f s", len(walks), time.Since(began).Seconds())
	rows := partsOf(t)
	if len(rows) != len(walks)-1 {
		t.Errorf("docs/parts.md has %d rows, want %d", len(rows), len(walks)-1)
	}
	for _, w := range walks {
		t.Run(w.name, func(t *testing.T) {
			dsn, env := teststack.MySQL(t), append(os.Environ(), "REDIS_URL="+redis, "KEY="+teststack.Key(t, "7"))
			if w.name == "pgx" {
				dsn = teststack.Postgres(t)
			}
			program := exec.CommandContext(t.Context(), shop, w.name)
			program.Env, program.Stderr = append(env, "DSN="+dsn), os.Stderr
			began := time.Now()
			got := w.run(t, program)
			if got != w.want {
				t.Errorf("it prints %q, want %q", got, w.want)
			}
			if w.row != "" {
				rows[w.row].check(t, w.name, dsn)
			}
			t.Logf("walk %s: %d lines copied, %.1f s: %s", w.name, copied[w.name], time.Since(began).Seconds(),
				strings.ReplaceAll(strings.TrimSpace(got), "\n", ", "))
		})
	}
}

// run returns what a program prints. One that serves prints its address, and answers the curls of
// the README and a crowd.
func (w walk) run(t *testing.T, program *exec.Cmd) string {
	t.Helper()
	if w.name != "http" {
		out, err := program.Output()
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	out, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr = strings.TrimSpace(addr)
	wantCurls(t, addr)
	return postAtOnce(t, "http://"+addr+"/payments")
}

// An answer is what a client of a guarded handler gets.
type answer struct {
	status   int
	body     string
	replayed bool
}

// postAtOnce sends one request fifty times at once. All get the same answer.
func postAtOnce(t *testing.T, url string) string {
	t.Helper()
	answers := make(chan answer)
	for range 50 {
		go func() {
			a := post(t, url)
			for a.status == http.StatusConflict { // on a slow machine, the wait may end
				a = post(t, url)
			}
			answers <- a
		}()
	}
	done, repeated := 0, 0
	for range 50 {
		a := <-answers
		if a.status != http.StatusOK || a.body != "payment 2\n" { // the first is that of the curls
			t.Errorf("status %d, %q", a.status, a.body)
		}
		if a.replayed {
			repeated++
		} else {
			done++
		}
	}
	return fmt.Sprintf("%d done, %d repeated\n", done, repeated)
}

func post(t *testing.T, url string) (a answer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return a
	}
	r.Header.Set("Idempotency-Key", "at-once")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return a
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{res.StatusCode, string(body), res.Header.Get("Idempotent-Replayed") == "true"}
}

// TestLinesToCopy: the README promises at most fifteen lines, which are no comments.
func TestLinesToCopy(t *testing.T) {
	for _, section := range []string{"GORM", "SQL, sqlc or pgx", "Idempotency-Key", "Messages", "A better lock"} {
		_, text, _ := strings.Cut(pages(t)["docs/start.md"], "\n## "+section+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		blocks := fenced.FindAllStringSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Errorf("docs/start.md: section %q has no code", section)
		}
		for _, m := range blocks {
			if n := countLines(m[2]); n > 15 {
				t.Errorf("docs/start.md: %d lines to copy in\n%s", n, m[2])
			}
		}
	}
}

// TestWidth: GitHub shows 97 columns of code, with tabs of eight, before its reader has to scroll.
func TestWidth(t *testing.T) {
	for _, path := range []string{"README.md", "README.zh-CN.md", "docs/start.md"} {
		for _, m := range fenced.FindAllStringSubmatch(pages(t)[path], -1) {
			if m[1] == "text" { // a DSN
				continue
			}
			for line := range strings.Lines(m[2]) {
				if n := utf8.RuneCountInString(line) + 7*strings.Count(line, "\t"); n > 98 { // with the newline
					t.Errorf("%s: a line of %d columns: %s", path, n-1, line)
				}
			}
		}
	}
}

// countLines counts the lines of code that are no comments.
func countLines(code string) int {
	return len(regexp.MustCompile(`(?m)^\s*[^\s/].*$`).FindAllString(code, -1))
}

// newUser builds the programs in a module of its own, as one, and returns its path, and how many
// lines of the pages are in each.
func newUser(t *testing.T) (program string, copied map[string]int) {
	t.Helper()
	shop, bin := t.TempDir(), filepath.Join(t.TempDir(), "shop")
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	copied = copyWalks(t, shop)
	if err := os.CopyFS(filepath.Join(shop, "db"), os.DirFS(filepath.Join(root, "examples/sqlcshop/db"))); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"mod init shop",
		"mod edit -require github.com/belaygo/belay@v0.0.0 -replace github.com/belaygo/belay=" + base,
		"mod edit -require github.com/belaygo/belay/guard/pgxguard@v0.0.0 -replace github.com/belaygo/belay/guard/pgxguard=" + base + "/guard/pgxguard",
		"mod edit -require github.com/go-redsync/redsync/v4@v4.18.1",
		"build -mod=mod -o " + bin + " .",
	} {
		cmd := exec.CommandContext(t.Context(), "go", strings.Fields(args)...)
		cmd.Dir, cmd.Env = shop, append(os.Environ(), "CGO_ENABLED=0", "GOSUMDB=off", "GOFLAGS=", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args, err, out)
		}
	}
	return bin, copied
}

var pasted = regexp.MustCompile(`(?m)^// COPY (?:(\w+\.md): )?(.*)$`)

// copyWalks copies the programs, and pastes the code of the pages where they say so. It returns how
// many lines each program has of them.
func copyWalks(t *testing.T, to string) map[string]int {
	t.Helper()
	copied := make(map[string]int)
	from := os.DirFS("testdata/walks")
	err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		whole := pasted.ReplaceAllStringFunc(string(text), func(line string) string {
			m := pasted.FindStringSubmatch(line)
			page := "docs/" + cmp.Or(m[1], "start.md")
			if m[1] == "README.md" {
				page = m[1]
			}
			code := codeOf(t, page, m[2])
			copied[strings.TrimSuffix(filepath.Base(filepath.Dir(path)), "walk")] += countLines(code)
			return code
		})
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(path)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), []byte(whole), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// codeOf returns the Go code of a section. "section: words" is the block after the text with these words.
func codeOf(t *testing.T, page, section string) string {
	t.Helper()
	section, words, _ := strings.Cut(section, ": ")
	_, text, found := strings.Cut(pages(t)[page], "# "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	text, _, _ = strings.Cut(text, "\n### ")
	_, after, found := strings.Cut(text, words)
	if !found {
		t.Fatalf("%s: section %q has no text %q", page, section, words)
	}
	blocks := fenced.FindAllStringSubmatch(after, -1)
	if words != "" {
		blocks = blocks[:1]
	}
	var code strings.Builder
	for _, m := range blocks {
		if m[1] == "go" {
			code.WriteString(m[2] + "\n")
		}
	}
	return code.String()
}

var shown = regexp.MustCompile("(?m)^\\$ (curl .*)\n((?:[^$`].*\n)*)")

// wantCurls runs the curls of the README, and compares what they print with what it shows, where ...
// stands for any lines.
func wantCurls(t *testing.T, addr string) {
	t.Helper()
	commands := shown.FindAllStringSubmatch(pages(t)["README.md"], -1)
	if len(commands) != 2 {
		t.Fatalf("README.md has %d curls", len(commands))
	}
	for _, m := range commands {
		if !strings.Contains(pages(t)["README.zh-CN.md"], m[0]) {
			t.Errorf("README.zh-CN.md does not show\n%s", m[0])
		}
		command := strings.ReplaceAll(m[1], "localhost:8080", addr)
		got, err := exec.CommandContext(t.Context(), "bash", "-c", command+" -s").Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		want := strings.ReplaceAll(regexp.QuoteMeta(m[2]), regexp.QuoteMeta("...\n"), "(?:.*\n)+?")
		if text := strings.ReplaceAll(string(got), "\r\n", "\n"); !regexp.MustCompile("^" + want + "$").MatchString(text) {
			t.Errorf("%s prints\n%s\nand README.md shows\n%s", command, text, m[2])
		}
	}
}
