package httpguard

import (
	"crypto/sha256"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// printVersion is that of the default Print.
const printVersion = 3

// contents returns the parts that a repeat must have in common with the request, as its
// client has sent it, and as it reaches the handler.
func contents(r *http.Request, body []byte) ([][]byte, error) {
	parts := target(r)
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		media = r.Header.Get("Content-Type")
	}
	parts = append(parts, []byte(media))
	if sum, ok := sumOfParts(body, media, params["boundary"]); ok {
		parts = append(parts, []byte("parts"), sum)
	} else {
		parts = append(parts, body)
	}
	if !isParsed(r) {
		return parts, nil
	}
	form, err := formOf(r)
	return append(parts, form...), err
}

// target returns what the request is for.
func target(r *http.Request) [][]byte {
	asked := askedFor(r)
	return [][]byte{
		[]byte(r.Method), []byte(r.URL.EscapedPath()), []byte(r.URL.RawQuery),
		[]byte(asked.EscapedPath()), []byte(asked.RawQuery),
	}
}

// contentsOfMessage are contents of a message: its service, and not its body. An operation that runs
// again may send another one under the id of its first run.
func contentsOfMessage(r *http.Request) [][]byte {
	return append(target(r), []byte("message"), []byte(r.Header.Get("Ce-Source")))
}

// isMessage reports whether a request has a message of package relay, whose id is the key.
func isMessage(h http.Header) bool {
	id := h.Get("Belay-Message")
	return id != "" && id == h.Get("Idempotency-Key")
}

// askedFor returns the URL that the client has sent, whatever middlewares have changed.
func askedFor(r *http.Request) *url.URL {
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		return asked
	}
	return r.URL
}

// isParsed reports whether a middleware has parsed a form, and so read the body.
func isParsed(r *http.Request) bool {
	return len(r.PostForm) > 0 || r.MultipartForm != nil && len(r.MultipartForm.File) > 0
}

// formOf returns the contents of a parsed form.
func formOf(r *http.Request) ([][]byte, error) {
	form := [][]byte{[]byte(r.PostForm.Encode())}
	if r.MultipartForm == nil {
		return form, nil
	}
	files := r.MultipartForm.File
	for _, field := range slices.Sorted(maps.Keys(files)) {
		for _, header := range files[field] {
			file, err := header.Open()
			if err != nil {
				return nil, err
			}
			sum := sha256.New()
			_, err = io.Copy(sum, file)
			_ = file.Close()
			if err != nil {
				return nil, err
			}
			form = append(form, []byte(field), headerBytes(header.Header), sum.Sum(nil))
		}
	}
	return form, nil
}

// headerBytes returns the headers of a part, sorted.
func headerBytes(header map[string][]string) []byte {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			b.WriteString(name + ": " + value + "\n") // neither has line breaks
		}
	}
	return []byte(b.String())
}
