package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed assets
var assetFiles embed.FS

var templates = parsePages()

func parsePages() map[string]*template.Template {
	base := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"line": line, "escape": url.PathEscape, "dict": dict, "event": eventPath,
		"list":   func(s ...string) []string { return s },
		"causes": func() []incident.Cause { return incident.Causes }, "verdicts": func() []notify.Verdict { return verdicts },
	}).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html"))
	all := make(map[string]*template.Template)
	files, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "pages/"), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		page := template.Must(base.Clone())
		all[name] = template.Must(page.ParseFS(pageFiles, file))
	}
	return all
}

// dict returns the argument of a part of a page, given as name, value, name, value.
func dict(pairs ...any) map[string]any {
	d := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		d[pairs[i].(string)] = pairs[i+1]
	}
	return d
}

// line is a foreign text as one line of printable characters.
func line(s any) string {
	return text.Line(text.Clip(fmt.Sprint(s), store.MaxText))
}

// asset serves a file whose address changes with its content.
func asset(w http.ResponseWriter, r *http.Request) {
	body, err := assetFiles.ReadFile("assets/" + r.PathValue("name"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	kind := "text/css; charset=utf-8"
	if strings.HasSuffix(r.PathValue("name"), ".js") {
		kind = "text/javascript; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(body) //nolint:gosec // an embedded file; the client may have gone
}

var assetVersion = func() string {
	sum := sha256.New()
	for _, name := range []string{"style.css", "live.js"} {
		body, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err)
		}
		sum.Write(body)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}()

// view is what every page has.
type view struct {
	Lang    words.Lang
	Name    string // of the page
	Prefix  string
	Here    string // path and query, without the prefix
	Version string // of the assets
	Now     time.Time
	intake
	Writes  bool
	User    string
	DocsURL string
	Status  int
	Problem string // of the query; empty = none
	Answer  bool   // to a form: not fetched again, as its address may have no page
	Copy    bool   // a file: it has no forms, no script, and nothing of what the monitor does now
	Body    any

	location *time.Location
	query    url.Values
}

func (h *Handler) view(r *http.Request, name string) *view {
	return &view{
		Lang: langOf(r), Name: name, Prefix: h.prefix, Version: assetVersion, Now: time.Now(),
		Here:   (&url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}).String(),
		intake: h.cfg.intake(), Writes: h.cfg.Writes, User: user(r.Context()), DocsURL: h.cfg.DocsURL, Copy: h.cfg.copied,
		Status: http.StatusOK, location: h.cfg.Location, query: r.URL.Query(),
	}
}

// T is a message in the language of the page.
func (v *view) T(key string, args ...any) string { return say(v.Lang, key, args...) }

// Word is a word of another part of the monitor in the language of the page, or
// as it is if it has no translation.
func (v *view) Word(kind, word string) string {
	if _, ok := messages[kind+word]; ok {
		return v.T(kind + word)
	}
	return line(word)
}

// Q is a query parameter, to fill in a form.
func (v *view) Q(name string) string { return v.query.Get(name) }

// Filtered reports whether the filter of a list has something filled in.
func (v *view) Filtered() bool {
	for name := range v.query {
		if v.Q(name) != "" && !slices.Contains([]string{"before", "show", "hours"}, name) {
			return true
		}
	}
	return false
}

// With is the address of this page with other query parameters, given as name,
// value, name, value; an empty value takes one out.
func (v *view) With(pairs ...string) string {
	q := url.Values{}
	maps.Copy(q, v.query)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	path, _, _ := strings.Cut(v.Here, "?")
	if len(q) == 0 {
		return v.Prefix + path
	}
	return v.Prefix + path + "?" + q.Encode()
}

// OtherLanguage is the address that changes the language.
func (v *view) OtherLanguage() string {
	to := words.Chinese
	if v.Lang == words.Chinese {
		to = words.English
	}
	return v.Prefix + "/language?to=" + string(to) + "&back=" + url.QueryEscape(v.Here)
}

// Zone is the name of the zone of all times.
func (v *view) Zone() string { return v.location.String() }

// Clock is a time with its date and zone.
func (v *view) Clock(t time.Time) string {
	return t.In(v.location).Format("2006-01-02 15:04:05 MST")
}

// When is a time with its zone, and its date unless that is today's.
func (v *view) When(t time.Time) string {
	if v.Day(t) == "" {
		return t.In(v.location).Format("15:04:05 MST")
	}
	return v.Clock(t)
}

// Day is a time's date, empty if that is today's.
func (v *view) Day(t time.Time) string {
	const date = "2006-01-02"
	if day := t.In(v.location).Format(date); day != v.Now.In(v.location).Format(date) {
		return day
	}
	return ""
}

// Hour is a time without its date, to the millisecond.
func (v *view) Hour(t time.Time) string { return t.In(v.location).Format("15:04:05.000") }

// Stamp is a time for machines.
func (v *view) Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Ago is how long ago something was, in words as browsers use them.
func (v *view) Ago(t time.Time) string {
	d := v.Now.Sub(t)
	future, span := d < 0, v.Span(d.Abs())
	switch {
	case v.Lang == words.Chinese && future:
		return span + "后"
	case v.Lang == words.Chinese:
		return span + "前"
	case future:
		return "in " + span
	}
	return span + " ago"
}

// Span is a duration in its largest unit that is there twice.
func (v *view) Span(d time.Duration) string {
	n, unit, zh := int(d.Seconds()), "s", "秒"
	switch {
	case d >= 48*time.Hour:
		n, unit, zh = int(d.Hours()/24), "d", "天"
	case d >= 2*time.Hour:
		n, unit, zh = int(d.Hours()), "h", "小时"
	case d >= 2*time.Minute:
		n, unit, zh = int(d.Minutes()), "min", "分钟"
	}
	if v.Lang == words.Chinese {
		unit = zh
	}
	return strconv.Itoa(n) + " " + unit
}

// Names is a list of foreign names.
func (v *view) Names(names []string) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = line(name)
	}
	return strings.Join(shown, v.T("list.and"))
}

// Count is a number, or the least that it is.
func (v *view) Count(c store.Bounded) string { return counted(c.N, c.More) }

// said is a sentence and whether it is English on a page that is not.
type said struct {
	Text    string
	English bool
}

// Entry says what the watcher saw.
func (v *view) Entry(e watch.Entry) said {
	return said{line(v.Lang.Entry(e)), v.Lang != words.English && e.Names[watch.Text] != ""}
}

// Evidence says what a row of evidence states.
func (v *view) Evidence(e incident.Evidence) said {
	return said{line(v.Lang.Evidence(e)), v.Lang != words.English && e.Kind == incident.Sentence}
}

// flags are numbers that only repeat what their sentence says.
var flags = []string{watch.Refused, watch.SameProcess, watch.WasMaster, watch.Routine, watch.Callers}

// Numbers are those of a row of evidence, without flags.
func (v *view) Numbers(e incident.Evidence) map[string]int64 {
	if e.Entry == nil {
		return nil
	}
	n := maps.Clone(e.Entry.Numbers)
	for _, f := range flags {
		delete(n, f)
	}
	return n
}

// maxTelling is how many rows of evidence a card shows.
const maxTelling = 2

// Telling returns the evidence that says most at a glance: that for the cause. The
// first row only repeats the event, unless there is none.
func (v *view) Telling(i incident.Incident) []incident.Evidence {
	rows := i.Evidence
	if len(rows) > 1 && i.Cause != incident.HeartbeatSilent {
		rows = rows[1:]
	}
	return rows[:min(len(rows), maxTelling)]
}

// finder finds the content of a page or a route.
type finder = func(context.Context, *query, *http.Request) (any, error)

// page returns the handler of a page.
func (h *Handler) page(name string, find finder) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
		defer cancel()
		v := h.view(r, name)
		q := &query{values: v.query, location: h.cfg.Location}
		body, err := find(ctx, q, r)
		if v.Body = body; err != nil {
			h.fail(ctx, v, err)
		}
		h.render(w, r, v)
	}
}

// fail has the page say what is wrong.
func (h *Handler) fail(ctx context.Context, v *view, err error) {
	if v.Status = h.statusOf(ctx, err); v.Status == http.StatusBadRequest {
		v.Problem = err.Error()
	}
}

// statusOf is the status that says what is wrong. It logs what is not the client's
// fault.
func (h *Handler) statusOf(ctx context.Context, err error) int {
	var bad *queryError
	switch {
	case errors.As(err, &bad), errors.Is(err, incident.ErrInvalidSilence), errors.Is(err, incident.ErrInvalidSettlement), errors.Is(err, errNobody):
		return http.StatusBadRequest
	case errors.Is(err, incident.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, incident.ErrChanged):
		return http.StatusConflict
	}
	h.cfg.Logger.LogAttrs(ctx, slog.LevelError, "request failed", slog.Any("error", err))
	return http.StatusServiceUnavailable
}

func (h *Handler) render(w http.ResponseWriter, r *http.Request, v *view) {
	t := templates[v.Name]
	if v.Status != http.StatusOK {
		t = templates["problem"]
	}
	var page bytes.Buffer
	if err := t.Execute(&page, v); err != nil {
		h.cfg.Logger.LogAttrs(r.Context(), slog.LevelError, "page not rendered", slog.Any("error", err))
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Accept-Language, Cookie")
	w.WriteHeader(v.Status)
	_, _ = page.WriteTo(w) // the client may have gone
}
