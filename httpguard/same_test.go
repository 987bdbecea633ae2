package httpguard_test

import (
	"bytes"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/internal/testdb"
)

// An asking is one request of a table.
type asking struct {
	path, body, media string
	method            string // defaults to POST
	host              string
	chunked           bool
}

func (a asking) send(t *testing.T, url, key string) *http.Request {
	t.Helper()
	method := a.method
	if method == "" {
		method = http.MethodPost
	}
	r := newRequest(t, method, url+a.path, key, strings.NewReader(a.body))
	if a.media != "" {
		r.Header.Set("Content-Type", a.media)
	}
	if a.host != "" {
		r.Host = a.host
	}
	if a.chunked {
		r.ContentLength = -1
	}
	return r
}

const urlencoded = "application/x-www-form-urlencoded"

// form is of one field, sent to a path.
func form(path, body string) asking { return asking{path: path, body: body, media: urlencoded} }

// parts is a request with parts, each the lines of its headers, an empty one, and its content.
func parts(path, boundary string, parts ...string) asking {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("--" + boundary + "\r\n" + strings.ReplaceAll(part, "\n", "\r\n") + "\r\n")
	}
	b.WriteString("--" + boundary + "--\r\n")
	return asking{path: path, body: b.String(), media: "multipart/form-data; boundary=" + boundary}
}

// The parts of a form.
const (
	amount1 = "Content-Disposition: form-data; name=\"amount\"\n\n1"
	amount2 = "Content-Disposition: form-data; name=\"amount\"\n\n2"
	bill    = "Content-Disposition: form-data; name=\"bill\"; filename=\"bill.png\"\nContent-Type: image/png\n\nPNG"
	other   = "Content-Disposition: form-data; name=\"bill\"; filename=\"other.png\"\nContent-Type: image/png\n\nPNG"
	shorter = "Content-Disposition: form-data; name=\"bill\"; filename=\"bill.png\"\nContent-Type: image/png\n\nPN"
	text    = "Content-Disposition: form-data; name=\"bill\"; filename=\"bill.png\"\nContent-Type: text/plain\n\nPNG"
	swapped = "content-type: image/png\ncontent-disposition: form-data; name=\"bill\"; filename=\"bill.png\"\n\nPNG"
)

// outer are middlewares outside of the guard, by the path that has them.
var outer = map[string]func(r *http.Request){
	"/plain/": func(*http.Request) {},
	"/form/":  func(r *http.Request) { _ = r.ParseForm() },
	"/value/": func(r *http.Request) { _ = r.FormValue("_method") },
	"/parts/": func(r *http.Request) { _ = r.ParseMultipartForm(1) }, // files are on disk
	"/reader/": func(r *http.Request) {
		m, err := r.MultipartReader()
		for err == nil {
			_, err = m.NextPart()
		}
	},
	"/read/":  func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
	"/peek/":  func(r *http.Request) { _, _ = r.Body.Read(make([]byte, 1)) },
	"/close/": func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); r.Body.Close() },
	"/again/": func(r *http.Request) {
		all, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(all))
		_ = r.ParseForm()
		r.Body = io.NopCloser(bytes.NewReader(all))
	},
	"/max/": func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 1) },
	"/decode/": func(r *http.Request) { // what it leaves is shorter than what was sent
		r.Header.Set("Content-Encoding", "own")
		r.Body = io.NopCloser(io.LimitReader(r.Body, 1))
	},
	"/decoded/": func(r *http.Request) { // and kept elsewhere
		r.Header.Set("Content-Encoding", "own")
		_, _ = io.Copy(io.Discard, r.Body)
	},
	"/rewritten/": func(r *http.Request) {
		if r.Header.Get("Content-Type") == "text/two" {
			r.URL.Path = "/plain/2"
		}
	},
}

// TestWhichRequestsAreTheSame: a repeat asks for the same, as far as its client and its handler
// can tell. What is no repeat never gets the answer of another request, over HTTP/1.1 and
// HTTP/2.
func TestWhichRequestsAreTheSame(t *testing.T) {
	t.Parallel()
	const (
		replayed = "replayed"
		mismatch = "mismatch"
		another  = "another" // which is served
		tooLong  = "too long"
		refused  = "refused" // as is the first, with 500
	)
	lines := map[string]struct {
		one, two asking
		want     string
	}{
		"the same":         {asking{path: "/plain/1", body: "a"}, asking{path: "/plain/1", body: "a"}, replayed},
		"no body":          {asking{path: "/plain/1"}, asking{path: "/plain/1"}, replayed},
		"chunked":          {asking{path: "/plain/1", body: "a"}, asking{path: "/plain/1", body: "a", chunked: true}, replayed},
		"body":             {asking{path: "/plain/1", body: "a"}, asking{path: "/plain/1", body: "b"}, mismatch},
		"method":           {asking{path: "/plain/1"}, asking{path: "/plain/1", method: http.MethodPatch}, mismatch},
		"media":            {asking{path: "/plain/1", media: "text/plain"}, asking{path: "/plain/1", media: "text/html"}, mismatch},
		"media's charset":  {asking{path: "/plain/1", media: "text/plain"}, asking{path: "/plain/1", media: "text/plain; charset=utf-8"}, replayed},
		"query":            {asking{path: "/plain/1?a=1"}, asking{path: "/plain/1?a=2"}, mismatch},
		"path":             {asking{path: "/plain/1"}, asking{path: "/plain/2"}, mismatch},
		"escaped path":     {asking{path: "/plain/a%2Fb"}, asking{path: "/plain/a%252Fb"}, mismatch},
		"another name":     {asking{path: "/plain/1", host: "a.example"}, asking{path: "/plain/1", host: "b.example:8080"}, replayed},
		"another pattern":  {asking{path: "/plain/1"}, asking{path: "/form/1"}, another},
		"another mount":    {asking{path: "/a/pay/1"}, asking{path: "/b/pay/1"}, another},
		"the same mount":   {asking{path: "/a/pay/1"}, asking{path: "/a/pay/1"}, replayed},
		"path in a mount":  {asking{path: "/a/pay/1"}, asking{path: "/a/pay/2"}, mismatch},
		"mount of a mount": {asking{path: "/a/b/pay/1"}, asking{path: "/b/pay/1"}, another},
		"bare mount":       {asking{path: "/c/pay"}, asking{path: "/d/pay"}, another},
		"same bare mount":  {asking{path: "/c/pay"}, asking{path: "/c/pay"}, replayed},
		"tenant in mount":  {asking{path: "/t/1/pay"}, asking{path: "/t/2/pay"}, another},
		"a rewritten path": {asking{path: "/rewritten/1", media: "text/one"}, asking{path: "/rewritten/1", media: "text/two"}, another},

		"a form":               {form("/plain/1", "amount=1"), form("/plain/1", "amount=1"), replayed},
		"a form read":          {form("/form/1", "amount=1"), form("/form/1", "amount=999"), mismatch},
		"a form read again":    {form("/form/1", "amount=1&b=2"), form("/form/1", "amount=1&b=2"), replayed},
		"a form of a value":    {form("/value/1", "amount=1"), form("/value/1", "amount=999"), mismatch},
		"a chunked form read":  {asking{path: "/form/1", body: "amount=1", media: urlencoded, chunked: true}, form("/form/1", "amount=9"), mismatch},
		"a form put back":      {form("/again/1", "amount=1"), form("/again/1", "amount=999"), mismatch},
		"a form put back same": {form("/again/1", "amount=1"), form("/again/1", "amount=1"), replayed},
		"no form":              {asking{path: "/form/1", body: "{}"}, asking{path: "/form/1", body: "[]"}, mismatch},
		"a body read":          {asking{path: "/read/1", body: "a"}, asking{path: "/read/1", body: "b"}, refused},
		"a body peeked":        {asking{path: "/peek/1", body: "ab"}, asking{path: "/peek/1", body: "cb"}, refused},
		"no body read":         {asking{path: "/read/1"}, asking{path: "/read/1"}, replayed},
		"a body limited":       {asking{path: "/max/1", body: "ab"}, asking{path: "/max/1", body: "ab"}, tooLong},
		"a body decoded":       {asking{path: "/decode/1", body: "ab"}, asking{path: "/decode/1", body: "ac"}, replayed},
		"a decoded body":       {asking{path: "/decode/1", body: "ab"}, asking{path: "/decode/1", body: "bb"}, mismatch},
		"a decoded body read":  {asking{path: "/decoded/1", body: "a"}, asking{path: "/decoded/1", body: "b"}, refused},
		"no body to decode":    {asking{path: "/decoded/1"}, asking{path: "/decoded/1"}, replayed},
		"a body closed":        {asking{path: "/close/1", body: "a"}, asking{path: "/close/1", body: "b"}, refused},

		"parts":              {parts("/plain/1", "x", amount1, bill), parts("/plain/1", "y", amount1, bill), replayed},
		"no parts":           {parts("/plain/1", "x"), parts("/plain/1", "y"), replayed},
		"part's content":     {parts("/plain/1", "x", amount1, bill), parts("/plain/1", "y", amount2, bill), mismatch},
		"part is shorter":    {parts("/plain/1", "x", amount1, bill), parts("/plain/1", "y", amount1, shorter), mismatch},
		"part's file":        {parts("/plain/1", "x", bill), parts("/plain/1", "y", other), mismatch},
		"part's type":        {parts("/plain/1", "x", bill), parts("/plain/1", "y", text), mismatch},
		"part's spelling":    {parts("/plain/1", "x", bill), parts("/plain/1", "y", swapped), replayed},
		"order of parts":     {parts("/plain/1", "x", amount1, bill), parts("/plain/1", "y", bill, amount1), mismatch},
		"one part more":      {parts("/plain/1", "x", amount1), parts("/plain/1", "y", amount1, amount1), mismatch},
		"1000 parts":         {parts("/plain/1", "x", slices.Repeat([]string{amount1}, 1000)...), parts("/plain/1", "y", slices.Repeat([]string{amount1}, 1000)...), replayed},
		"1001 parts":         {parts("/plain/1", "x", slices.Repeat([]string{amount1}, 1001)...), parts("/plain/1", "y", slices.Repeat([]string{amount1}, 1001)...), mismatch},
		"parts cut":          {asking{path: "/plain/1", body: "--x\r\nA: b\r\n\r\n1", media: "multipart/form-data; boundary=x"}, asking{path: "/plain/1", body: "--x\r\nA: b\r\n\r\n2", media: "multipart/form-data; boundary=x"}, mismatch},
		"not parts":          {asking{path: "/plain/1", body: "a", media: "multipart/form-data; boundary=x"}, asking{path: "/plain/1", body: "b", media: "multipart/form-data; boundary=x"}, mismatch},
		"parts, no boundary": {asking{path: "/plain/1", body: "a", media: "multipart/form-data"}, asking{path: "/plain/1", body: "b", media: "multipart/form-data"}, mismatch},
		"parts read":         {parts("/parts/1", "x", amount1, bill), parts("/parts/1", "y", amount1, bill), replayed},
		"parts read, value":  {parts("/parts/1", "x", amount1, bill), parts("/parts/1", "y", amount2, bill), mismatch},
		"parts read, file":   {parts("/parts/1", "x", amount1, bill), parts("/parts/1", "y", amount1, shorter), mismatch},
		"parts read, name":   {parts("/parts/1", "x", bill), parts("/parts/1", "y", other), mismatch},
		"parts by a reader":  {parts("/reader/1", "x", amount1), parts("/reader/1", "y", amount2), refused},
	}
	s := newSite(t)
	s.cfg.Principal = func(*http.Request) (string, error) { return "eve", nil }
	s.cfg.Docs = "https://example.com/errors"
	g, err := httpguard.New(s.guard.Guard, s.cfg)
	testdb.WantNil(t, err)
	pay := g(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spend(t, r)
		w.WriteHeader(http.StatusCreated)
	}))
	inner := http.NewServeMux()
	inner.Handle("POST /pay/{id}", pay)
	inner.Handle("/b/", http.StripPrefix("/b", inner))
	rewritten := http.NewServeMux()
	rewritten.Handle("/rewritten/{id}", pay)
	rewritten.Handle("/plain/{id}", pay)
	mux := http.NewServeMux()
	mux.Handle("/a/", http.StripPrefix("/a", inner))
	mux.Handle("/b/", http.StripPrefix("/b", inner))
	mux.Handle("/c/", http.StripPrefix("/c", pay))
	mux.Handle("/d/", http.StripPrefix("/d", pay))
	tenant := http.NewServeMux()
	tenant.Handle("/pay", pay)
	mux.HandleFunc("/t/{id}/", func(w http.ResponseWriter, r *http.Request) {
		http.StripPrefix("/t/"+r.PathValue("id"), tenant).ServeHTTP(w, r)
	})
	for path, before := range outer {
		next := pay
		if path == "/rewritten/" {
			next = rewritten
		}
		mux.HandleFunc(path+"{id}", func(w http.ResponseWriter, r *http.Request) {
			before(r)
			next.ServeHTTP(w, r)
		})
	}
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		server := listen(t, protocol, mux)
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			line := lines[name]
			t.Run(name+"/"+protocol, func(t *testing.T) {
				key := strings.NewReplacer(" ", "-", ",", "").Replace(name) + "/" + protocol
				first := look(t, server, line.one.send(t, server.URL, key))
				second := look(t, server, line.two.send(t, server.URL, key))
				got := another
				switch {
				case first.status == http.StatusInternalServerError && second.status == http.StatusInternalServerError:
					got = refused
				case first.status == http.StatusRequestEntityTooLarge && second.status == http.StatusRequestEntityTooLarge:
					got = tooLong
				case first.status != http.StatusCreated:
					got = "an error"
				case second.status == http.StatusUnprocessableEntity:
					got = mismatch
				case second.header.Get("Idempotent-Replayed") == "true":
					got = replayed
				}
				if got != line.want {
					t.Errorf("the second request is %s, want %s:\n%v\n%v", got, line.want, first, second)
				}
			})
		}
	}
}

// TestFilesAreRemoved: the files of a form that a handler has parsed do not stay on disk.
func TestFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := newSite(t)
	files := 0
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		testdb.WantNil(t, r.ParseMultipartForm(1))
		found, err := os.ReadDir(dir)
		testdb.WantNil(t, err)
		files = len(found)
		if s.ran.Load() == 2 {
			panic(http.ErrAbortHandler)
		}
	})
	for range 2 {
		var body bytes.Buffer
		m := multipart.NewWriter(&body)
		f, err := m.CreateFormFile("bill", "bill.png")
		testdb.WantNil(t, err)
		_, err = f.Write(make([]byte, 1000))
		testdb.WantNil(t, err)
		testdb.WantNil(t, m.Close())
		r := newRequest(t, http.MethodPost, server.URL+"/pay/1", m.Boundary()[:20], &body)
		r.Header.Set("User", "eve")
		r.Header.Set("Content-Type", m.FormDataContentType())
		look(t, server, r)
	}
	server.Close() // which waits for its handlers
	left, err := os.ReadDir(dir)
	testdb.WantNil(t, err)
	if files == 0 || len(left) > 0 {
		t.Errorf("%d files are there within the handler, and %d behind it", files, len(left))
	}
}

// TestFunctionsMayReadTheRequest: what the functions of a Config read of a request is there for
// the others, and for the handler.
func TestFunctionsMayReadTheRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	reads := func(who string, r *http.Request) {
		all, err := io.ReadAll(r.Body)
		if string(all) != "amount=1" || err != nil {
			t.Errorf("%s reads %q, %v", who, all, err)
		}
	}
	parses := func(who string, r *http.Request) {
		if got := r.PostFormValue("amount"); got != "1" {
			t.Errorf("%s finds %q in the form", who, got)
		}
	}
	for name, look := range map[string]func(who string, r *http.Request){"reads": reads, "parses": parses} {
		s.cfg.Keys = func(r *http.Request, _ []byte) ([]string, error) { look("Keys", r); return nil, nil }
		s.cfg.Operation = func(r *http.Request) string { look("Operation", r); return "pay" }
		s.cfg.Print = func(r *http.Request, body []byte) [][]byte { look("Print", r); return [][]byte{body} }
		server := s.serve(func(_ http.ResponseWriter, r *http.Request) { look("the handler", r) })
		for range 2 {
			post(t, server, "/pay/1", "amount=1", "Content-Type", urlencoded, "Idempotency-Key", name).want(t, http.StatusOK, "")
		}
	}
	s.wantRan(2)
}
