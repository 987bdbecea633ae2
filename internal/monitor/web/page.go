package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/belaygo/belay/internal/monitor/store"
	"github.com/belaygo/belay/internal/monitor/text"
	"github.com/belaygo/belay/notify"
)

const (
	shownEvents    = 100
	maxDescription = 2 << 10 // bytes
)

//go:embed page.css
var style string

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"clip": func(s string) string { return text.Line(text.Clip(s, store.MaxText)) },
	"describe": func(ev notify.Event) string {
		return text.Line(text.Clip(notify.Describe(ev), maxDescription))
	},
}).Parse(pageHTML))

// The page has no script and no image; its one style sheet is named by hash.
var contentSecurityPolicy = "default-src 'none'; style-src 'sha256-" + hash(style) +
	"'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

var verdicts = []struct {
	Verdict notify.Verdict
	Words   string
}{
	{notify.Overlap, "two callers got in; the database refused the second"},
	{notify.Lost, "the lock went while its holder worked"},
	{notify.UnknownCommit, "whether a commit took effect is not known"},
	{notify.Degraded, "operations ran without the lock"},
}

// page shows the counts and the events that arrived last.
type page struct{ cfg Config }

type pageData struct {
	Style     template.CSS
	Now       time.Time
	Connected bool
	Failed    bool // the store could not be read; nothing below is known
	Counts    []verdictCount
	Events    []store.Received
	Limit     int
}

type verdictCount struct {
	Verdict notify.Verdict
	Words   string
	store.Count
}

func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	data := pageData{
		Style:     template.CSS(style), //nolint:gosec // our own file
		Now:       time.Now().UTC(),
		Connected: p.cfg.Broker.Connected(),
		Limit:     shownEvents,
	}
	code := http.StatusOK
	if err := p.read(ctx, &data); err != nil {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelError, "store does not answer", slog.Any("error", err))
		data.Failed, code = true, http.StatusServiceUnavailable
	}
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, data); err != nil {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelError, "page not rendered", slog.Any("error", err))
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = body.WriteTo(w) // the client may have gone
}

func (p page) read(ctx context.Context, data *pageData) error {
	counts, err := p.cfg.Store.Counts(ctx)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		data.Counts = append(data.Counts, verdictCount{v.Verdict, v.Words, counts[v.Verdict]})
	}
	data.Events, err = p.cfg.Store.Recent(ctx, shownEvents)
	return err
}
