package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
)

// maxFiles bounds a copy: a large store has a page for each of its events.
const maxFiles = 2000

// WriteFiles writes the pages of a store as files, in each language, to a new folder that any web
// server can serve and a browser can open. They show the store as it is now, have no forms, and run
// no script. It begins with the overview and follows the links, to 2000 pages at most: links to more
// lead nowhere. It uses Store, DocsURL, Location and Logger of cfg, and returns the number of pages.
func WriteFiles(ctx context.Context, cfg Config, dir string) (int, error) {
	return writeFiles(ctx, cfg, dir, maxFiles)
}

func writeFiles(ctx context.Context, cfg Config, dir string, most int) (int, error) {
	h, err := NewHandler(Config{
		Store: cfg.Store, DocsURL: cfg.DocsURL, Location: cfg.Location, Logger: cfg.Logger,
		Endpoint: noEndpoint{http.NotFoundHandler()}, Metrics: prometheus.NewRegistry(), copied: true,
	})
	if err != nil {
		return 0, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // a web server reads it
		return 0, fmt.Errorf("write the pages: %w", err)
	}
	c := &copier{routes: h.routes(), dir: dir, most: most, files: make(map[address]string)}
	for _, lang := range languages {
		c.file(address{lang, "/"})
	}
	return c.run(ctx)
}

// noEndpoint takes no events: those of a copy have arrived.
type noEndpoint struct{ http.Handler }

func (noEndpoint) Err() error { return nil }

// An address is that of a page: its path and query, in one language.
type address struct {
	lang words.Lang
	url  string
}

// A copier writes pages, and those that they lead to.
type copier struct {
	routes http.Handler
	dir    string
	most   int
	files  map[address]string // of the pages that are written or will be, from dir, with slashes
	todo   []address
}

func (c *copier) run(ctx context.Context) (int, error) {
	for n := 0; n < len(c.todo); n++ { // which grows
		at := c.todo[n]
		page, err := c.get(ctx, at)
		if err == nil {
			err = c.write(c.files[at], c.relink(at, page))
		}
		if err != nil {
			return n, fmt.Errorf("write the page %s: %w", at.url, err)
		}
	}
	style, err := assetFiles.ReadFile("assets/style.css")
	if err != nil {
		return len(c.todo), err
	}
	return len(c.todo), c.write("assets/style.css", style)
}

// get returns a page as a browser gets it.
func (c *copier) get(ctx context.Context, at address) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+at.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.AddCookie(&http.Cookie{Name: langCookie, Value: string(at.lang)}) //nolint:gosec // of a request
	a := &answer{header: make(http.Header)}
	c.routes.ServeHTTP(a, r)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.status >= http.StatusInternalServerError {
		return nil, fmt.Errorf("status %d: the log says why", a.status)
	}
	return a.body.Bytes(), nil
}

// An answer keeps what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

func (c *copier) write(file string, text []byte) error {
	name := filepath.Join(c.dir, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // a web server reads it
		return err
	}
	return os.WriteFile(name, text, 0o644) //nolint:gosec // a web server reads it
}

// Templates escape quotes in all other text.
var siteLink = regexp.MustCompile(` (href|src)="(/[^"]*)"`)

// relink makes the links of a page lead to files.
func (c *copier) relink(at address, page []byte) []byte {
	from := path.Dir(c.files[at])
	return siteLink.ReplaceAllFunc(page, func(link []byte) []byte {
		m := siteLink.FindSubmatch(link)
		to := c.target(at.lang, html.UnescapeString(string(m[2])))
		if to == "" {
			return nil
		}
		to, err := filepath.Rel(from, to)
		if err != nil {
			return nil
		}
		return fmt.Appendf(nil, ` %s="%s"`, m[1], filepath.ToSlash(to))
	})
}

// target returns the file that a link leads to, empty if there is none.
func (c *copier) target(lang words.Lang, link string) string {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return ""
	case strings.HasPrefix(u.Path, "/assets/"):
		return strings.TrimPrefix(u.Path, "/")
	case u.Path == "/language":
		return c.file(address{words.Lang(u.Query().Get("to")), local(u.Query().Get("back"))})
	}
	return c.file(address{lang, link})
}

// file returns the file of a page, and has it written. It is empty when there are too many.
func (c *copier) file(at address) string {
	if file, ok := c.files[at]; ok {
		return file
	}
	if len(c.files) >= c.most {
		return ""
	}
	c.files[at] = at.file()
	c.todo = append(c.todo, at)
	return c.files[at]
}

// file is the name of a page's file. English is the language without a folder.
func (a address) file() string {
	way, query, found := strings.Cut(strings.TrimPrefix(a.url, "/"), "?")
	var parts []string
	if a.lang != words.English {
		parts = append(parts, string(a.lang))
	}
	for part := range strings.SplitSeq(way, "/") {
		if part != "" {
			parts = append(parts, plainName(part))
		}
	}
	if found {
		parts = append(parts, plainName(query+"?"))
	}
	return path.Join(append(parts, "index.html")...)
}

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// plainName is a part of an address as the name of a folder on every system: services choose the ids
// of events. Another text has another name.
func plainName(part string) string {
	const most = 40
	name := strings.Trim(notPlain.ReplaceAllString(strings.ToLower(part), "-"), "-")
	if name == part && len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(part))
	return strings.TrimPrefix(name[:min(len(name), most)]+"-"+hex.EncodeToString(sum[:4]), "-")
}
