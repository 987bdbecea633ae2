package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestSecurityHeaders(t *testing.T) {
	h := newSite(t)
	for _, path := range []string{"/", "/healthz", "/metrics", "/missing"} {
		header := h.get(t, path).Header()
		policy := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			mustContain(t, policy, want)
		}
		if got := header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options %q", path, got)
		}
		if got := header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
	}
}

func TestHost(t *testing.T) {
	h := newSite(t)
	for host, want := range map[string]int{
		"127.0.0.1":              200,
		"127.0.0.1:9440":         200,
		"127.8.9.1:1":            200,
		"localhost":              200,
		"LocalHost:9440":         200,
		"[::1]":                  200,
		"[::1]:9440":             200,
		"":                       421,
		"evil.example":           421,
		"evil.example:9440":      421,
		"localhost.evil.example": 421,
		"127.0.0.1.evil.example": 421,
		"10.0.0.1:9440":          421,
		"0.0.0.0:9440":           421,
		"[::]:9440":              421,
		"127.0.0.1:9440:9440":    421,
	} {
		for _, path := range []string{"/", "/healthz", "/metrics"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("host %q, path %s: %d, want %d", host, path, w.Code, want)
			}
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	h := newSite(t)
	tests := []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 200}, {"HEAD", "/", 200}, {"HEAD", "/healthz", 200}, {"HEAD", "/metrics", 200},
		{"POST", "/", 405}, {"PUT", "/healthz", 405}, {"DELETE", "/metrics", 405}, {"OPTIONS", "/", 405},
		{"GET", "/missing", 404}, {"GET", "/healthz/x", 404}, {"GET", "/assets/style.css", 200}, {"GET", "/assets/..%2Fweb.go", 404},
	}
	for _, tt := range tests {
		r := httptest.NewRequest(tt.method, "http://localhost"+tt.path, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.path, w.Code, tt.want)
		}
	}
}
