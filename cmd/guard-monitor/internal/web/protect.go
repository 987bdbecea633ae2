package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Scripts and styles come from this site's own files only, and nothing may
// frame a page.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const maxBody = 64 << 10 // bytes of a request

// hsts has browsers use https alone for a year. They heed it over https only.
const hsts = "max-age=31536000"

// protect answers only requests for a known host, bounds their bodies, and sets
// the headers that keep a browser from running, framing or storing what it is shown,
// and from asking for it without TLS under the name that has a certificate.
func (h *Handler) protect(next http.Handler, external *url.URL) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentSecurityPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if external.Scheme == "https" && strings.EqualFold(hostname(r.Host), external.Hostname()) {
			header.Set("Strict-Transport-Security", hsts)
		}
		if !known(r.Host, external.Hostname(), h.cfg.AnyAddress) {
			http.Error(w, "unknown host: ask for localhost, a loopback address, or the host of the setting external_url",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// known reports whether host, with or without a port, is localhost, a loopback
// address or external, unless that is empty. The port is ignored, as a tunnel may
// have another one. With anyAddress, every IP address is known: DNS rebinding needs
// a name.
func known(host, external string, anyAddress bool) bool {
	name := hostname(host)
	if strings.EqualFold(name, "localhost") {
		return true
	}
	if addr, err := netip.ParseAddr(name); err == nil && (addr.IsLoopback() || anyAddress) {
		return true
	}
	return external != "" && strings.EqualFold(external, name)
}

// hostname returns a host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// strip removes the prefix from the path. Requests without it pass as well, since
// some proxies remove it themselves.
func (h *Handler) strip(next http.Handler) http.Handler {
	if h.prefix == "" {
		return next
	}
	stripped := http.StripPrefix(h.prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == h.prefix:
			http.Redirect(w, r, h.prefix+"/", http.StatusMovedPermanently)
		case strings.HasPrefix(r.URL.Path, h.prefix+"/"):
			stripped.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// readOnly rejects every method that may change something, unless Config.Writes is
// set.
func (h *Handler) readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !h.cfg.Writes {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "read-only: the setting web.writes is false", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}
