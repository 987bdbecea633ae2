package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// export writes the pages beside the program that has the database open, and over no other files.
func TestExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, site := filepath.Join(dir, "monitor.db"), filepath.Join(dir, "site")
	st, err := store.Open(t.Context(), db)
	check(t, err)
	defer st.Close()
	_, err = st.Add(t.Context(), event("exported"), nil, "")
	check(t, err)
	p := start(t, nil, "export", "-db", db, site)
	if code := p.wait(); code != 0 || !strings.HasPrefix(p.stdout.String(), "wrote ") {
		t.Fatalf("code %d, %q, %q", code, p.stdout, p.stderr)
	}
	for _, page := range []string{"events", "zh/events"} {
		text, err := os.ReadFile(filepath.Join(site, page, "index.html"))
		if err != nil || !strings.Contains(string(text), `href="exported/index.html"`) {
			t.Errorf("%s: %v, no event in %s", page, err, text)
		}
	}
	for args, want := range map[string]string{db + " " + site: "exists", db + " " + site + " x": "takes one folder"} {
		p := start(t, nil, append([]string{"export", "-db"}, strings.Fields(args)...)...)
		if code := p.wait(); code == 0 || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("%s: code %d, %q, want %q", args, code, p.stderr, want)
		}
	}
}
