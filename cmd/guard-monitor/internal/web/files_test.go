package web_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

// oddIDs are ids of events that are no names of files.
var oddIDs = []string{".", "..", "a/b", "/", `\`, "index.html", "Case", "case", strings.Repeat("long", 60)}

// copied returns the files of a site by their names, without those of the assets.
func copied(t *testing.T, s *site) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	n, err := web.WriteFiles(t.Context(), s.cfg, dir)
	if err != nil {
		t.Fatal(err)
	}
	files := filesIn(t, dir)
	if len(files) != n {
		t.Errorf("%d files, %d pages", len(files), n)
	}
	return files
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if rel, _ := filepath.Rel(dir, name); rel != "assets/style.css" {
			files[rel] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var linkOf = regexp.MustCompile(` (?:href|src|action)="([^"]*)"`)

// linked returns the files that the links of one lead to.
func linked(name, text string) (to []string) {
	for _, m := range linkOf.FindAllStringSubmatch(text, -1) {
		switch {
		case strings.HasPrefix(m[1], "https://"), strings.HasPrefix(m[1], "#"), m[1] == "data:,":
			continue
		}
		to = append(to, filepath.Join(filepath.Dir(name), m[1]))
	}
	return to
}

// Each link of a copy leads to a file of it, and each file is reached. There is nothing that only a
// program can answer.
func TestFiles(t *testing.T) {
	s := busySite(t, func(c *web.Config) { c.Auth, c.ExternalURL = newAuth(t), "https://monitor.example/under" })
	for _, id := range oddIDs {
		ev := event(id)
		ev.Key = "key of " + id
		s.add(t, ev)
	}
	files := copied(t, s)
	reached := map[string]bool{"index.html": true}
	for name, text := range files {
		for _, to := range linked(name, text) {
			if _, ok := files[to]; !ok && to != "assets/style.css" {
				t.Errorf("%s has a link to %s, which is not there", name, to)
			}
			reached[to] = true
		}
		mustNotContain(t, text, "<script", "<form", "http-equiv", "monitor.example", "<no value>")
		want := `<html lang="en"`
		if strings.HasPrefix(name, "zh/") {
			want = `<html lang="zh"`
		}
		mustContain(t, text, want)
	}
	for name := range files {
		if !reached[name] {
			t.Errorf("no link leads to %s", name)
		}
	}
	one := "incidents/" + incidentID + "/index.html"
	mustContain(t, files[one], "took over the slots 0-5460")
	mustContain(t, files["zh/"+one], "故障转移")
	if to := linked(one, files[one]); !slices.Contains(to, "zh/"+one) {
		t.Errorf("the incident has no link to its page in Chinese: %q", to)
	}
	for _, id := range oddIDs {
		shown := 0
		for name, text := range files {
			if strings.HasPrefix(name, "event") && strings.Contains(text, "<code>key of "+id+"</code>") && strings.Contains(text, `id="raw-title"`) {
				shown++
			}
		}
		if shown != 1 {
			t.Errorf("event %q has %d pages", id, shown)
		}
	}
}

// A large store has no copy of each page, and no link to one that is missing.
func TestFilesAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	n, err := web.WriteFilesUpTo(t.Context(), busySite(t).cfg, dir, 7)
	if err != nil || n != 7 {
		t.Fatalf("%d pages, %v", n, err)
	}
	files := filesIn(t, dir)
	for name, text := range files {
		for _, to := range linked(name, text) {
			if _, ok := files[to]; !ok && to != "assets/style.css" {
				t.Errorf("%s has a link to %s, which is not there", name, to)
			}
		}
	}
	if _, err := web.WriteFiles(t.Context(), busySite(t).cfg, dir); err == nil {
		t.Error("a copy was written over another")
	}
}
