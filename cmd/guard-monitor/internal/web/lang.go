package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
)

const langCookie = "guard_monitor_language"

var languages = []words.Lang{words.English, words.Chinese}

// langOf returns the language of the cookie, or else the one that the browser
// prefers.
func langOf(r *http.Request) words.Lang {
	if c, err := r.Cookie(langCookie); err == nil && slices.Contains(languages, words.Lang(c.Value)) {
		return words.Lang(c.Value)
	}
	for tag := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), ";")
		primary, _, _ := strings.Cut(tag, "-")
		if l := words.Lang(primary); slices.Contains(languages, l) {
			return l
		}
	}
	return words.English
}

// language stores the language in a cookie and redirects to the page.
func (h *Handler) language(w http.ResponseWriter, r *http.Request) {
	choice := r.URL.Query().Get("to")
	if !slices.Contains(languages, words.Lang(choice)) {
		http.Error(w, "to: want en or zh", http.StatusBadRequest)
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // a language is no secret; without TLS it must be kept, too
		Name: langCookie, Value: choice, Path: h.prefix + "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int((365 * 24 * time.Hour).Seconds()),
	})
	http.Redirect(w, r, h.prefix+local(r.URL.Query().Get("back")), http.StatusSeeOther) //nolint:gosec // local keeps it on this site
}

// local returns the path and query of an address on this site, or / for any other,
// so that the redirect stays here.
func local(back string) string {
	u, err := url.Parse(back)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") ||
		strings.Contains(u.RawPath, "\\") { // an escaped one is in the id of an event
		return "/"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}

// counted returns a number, or the bound at which counting stopped.
func counted[N int | int64](n N, more bool) string {
	if more {
		return fmt.Sprintf("> %d", n)
	}
	return fmt.Sprint(n)
}
