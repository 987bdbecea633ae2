package docs_test

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// walks are the programs of testdata/walks, each with what it prints.
var walks = map[string]string{
	"gorm":     "1 done, 7 repeated\n",
	"sql":      "1 done, 7 repeated\n",
	"pgx":      "1 done, 7 repeated\n",
	"messages": "1 done, 7 repeated\n1 mail, 1 payment of 3 deliveries\n",
	"lock":     "8 done, 0 repeated\n8 one after the other\n",
	"redsync":  "8 done, 0 repeated\n8 done, 0 repeated\n840 of 1000 cents are left\n",
	"noredis":  "1 done, 7 repeated\n",
}

// TestWalks starts as a new user does: in an empty folder, with the lines of docs/start.md in a
// program that has the imports, a database and Redis. Eight callers do the same at once.
func TestWalks(t *testing.T) {
	if testing.Short() {
		t.Skip("it links a program")
	}
	redis := "redis+cluster://" + strings.Join(teststack.Redis(t), ",")
	shop := newUser(t)
	env := func(t *testing.T) []string {
		return append(os.Environ(), "REDIS_URL="+redis, "MYSQL_DSN="+teststack.MySQL(t), "KEY="+teststack.Key(t, "7"))
	}
	for name, want := range walks {
		t.Run(name, func(t *testing.T) {
			program := exec.CommandContext(t.Context(), shop, name)
			program.Env, program.Stderr = env(t), os.Stderr
			if name == "pgx" {
				program.Env = append(program.Env, "POSTGRES_DSN="+teststack.Postgres(t))
			}
			if got, err := program.Output(); err != nil || string(got) != want {
				t.Errorf("it prints %q, %v, want %q", got, err, want)
			}
		})
	}
	t.Run("http", func(t *testing.T) {
		program := exec.CommandContext(t.Context(), shop, "http")
		program.Env = env(t)
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
		wantCurls(t, strings.TrimSpace(addr))
	})
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
			n := len(regexp.MustCompile(`(?m)^\s*[^\s/].*$`).FindAllString(m[2], -1))
			if n > 15 {
				t.Errorf("docs/start.md: %d lines to copy in\n%s", n, m[2])
			}
		}
	}
}

// newUser builds the programs in a module of its own, as one, and returns its path.
func newUser(t *testing.T) string {
	t.Helper()
	shop, bin := t.TempDir(), filepath.Join(t.TempDir(), "shop")
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	copyWalks(t, shop)
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
	return bin
}

var pasted = regexp.MustCompile(`(?m)^// COPY (?:(\w+\.md): )?(.*)$`)

// copyWalks copies the programs, and pastes the code of the pages where they say so.
func copyWalks(t *testing.T, to string) {
	t.Helper()
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
			if m[1] == "" {
				m[1] = "start.md"
			}
			return codeOf(t, "docs/"+m[1], m[2])
		})
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(path)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), []byte(whole), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
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
