package web_test

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

const token = "0123456789abcdef-token"

// basicAlice is the header by which the user of newAuth authenticates.
var basicAlice = "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:pass:word"))

func newAuth(tb testing.TB) *web.Auth {
	tb.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("pass:word"), bcrypt.MinCost)
	if err != nil {
		tb.Fatal(err)
	}
	auth, err := web.NewAuth([]byte("# people\n\nalice:"+string(hash)+"\n"), token)
	if err != nil {
		tb.Fatal(err)
	}
	return auth
}

// Whoever can reach the address causes a line, not one for each request.
func TestStrangersFillNoLog(t *testing.T) {
	var out bytes.Buffer
	s := newSite(t, func(c *web.Config) { c.Auth, c.Logger = newAuth(t), slog.New(slog.NewTextHandler(&out, nil)) })
	for range 50 {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9440/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token+"x")
		serve(s, r)
	}
	if n := strings.Count(out.String(), "authentication refused"); n != 1 {
		t.Errorf("%d lines, want 1:\n%s", n, out.String())
	}
}

func TestAuthentication(t *testing.T) {
	s := newSite(t, withWrites, func(c *web.Config) { c.Auth = newAuth(t) })
	basic := func(name, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(name, password) }
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	tests := []struct {
		name string
		as   func(*http.Request)
		want int
	}{
		{"nobody", func(*http.Request) {}, 401},
		{"right password", basic("alice", "pass:word"), 200},
		{"right password again", basic("alice", "pass:word"), 200},
		{"wrong password", basic("alice", "password"), 401},
		{"empty password", basic("alice", ""), 401},
		{"unknown user", basic("mallory", "pass:word"), 401},
		{"token", bearer(token), 403},
		{"wrong token", bearer(token + "x"), 401},
		{"empty token", bearer(""), 401},
		{"token as password", basic("token", token), 401},
		{"nonsense", func(r *http.Request) { r.Header.Set("Authorization", "Basic %%%") }, 401},
	}
	for _, tt := range tests {
		for _, path := range append(pages, "/live", "/metrics", "/api/v1/overview", "/assets/live.js", "/healthz/", "/x/healthz", "/belay/healthz/../") {
			if path == "/live" && tt.want == 200 {
				continue // it does not end
			}
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
			r.RemoteAddr = tt.name + path // failed logins are limited by address
			tt.as(r)
			w := serve(s, r)
			want := tt.want
			if want == 403 && path == "/metrics" {
				want = 200
			}
			if (w.Code == 401) != (want == 401) || (w.Code == 403) != (want == 403) {
				t.Errorf("%s, %s: %d, want %d", tt.name, path, w.Code, want)
			}
			if w.Code == 401 && len(w.Header().Values("WWW-Authenticate")) != 2 {
				t.Errorf("%s: challenges %q", path, w.Header().Values("WWW-Authenticate"))
			}
		}
	}
	for _, path := range []string{"/healthz", "/livez"} {
		if w := s.get(t, path); w.Code != 200 {
			t.Errorf("%s without authentication: %d", path, w.Code)
		}
	}
	if w := s.do(t, http.MethodPost, "/incidents/x/ack", "by=me"); w.Code != 401 {
		t.Errorf("a write without authentication: %d", w.Code)
	}
	if w := s.do(t, http.MethodPost, "/metrics", "by=me", "Authorization", "Bearer "+token); w.Code != 405 {
		t.Errorf("a write with the token: %d", w.Code)
	}
}

func TestNewAuthRefuses(t *testing.T) {
	for _, users := range []string{"alice", "alice:secret1", ":x", "alice:$1$md5$abc", "alice:{SHA}abc="} {
		_, err := web.NewAuth([]byte(users), "")
		if err == nil || strings.Contains(err.Error(), "secret1") {
			t.Errorf("NewAuth(%q): %v", users, err)
		}
	}
	if _, err := web.NewAuth(nil, "short"); err == nil || strings.Contains(err.Error(), "short\"") {
		t.Errorf("a short token: %v", err)
	}
	if auth, err := web.NewAuth([]byte("# nobody\n"), ""); auth != nil || err != nil {
		t.Errorf("nobody: %v %v", auth, err)
	}
}

func TestReadOnly(t *testing.T) {
	s := newSite(t)
	s.explain(t)
	for _, route := range []string{
		"POST /incidents/" + incidentID + "/ack", "POST /incidents/" + incidentID + "/unack",
		"POST /api/v1/silences", "DELETE /api/v1/silences/1", "PUT /", "PATCH /events",
	} {
		method, path, _ := strings.Cut(route, " ")
		if w := s.do(t, method, path, "by=me"); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d, want 405", route, w.Code)
		}
	}
	i, err := s.store.Incident(t.Context(), incidentID)
	if err != nil || i.AckedBy != "" {
		t.Errorf("acknowledged by %q, %v", i.AckedBy, err)
	}
}

func TestWrites(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, withWrites, func(c *web.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	s.explain(t)
	post := func(path, form string, want int) {
		t.Helper()
		if w := s.do(t, http.MethodPost, path, form); w.Code != want {
			t.Errorf("POST %s %q: %d, want %d: %.300s", path, form, w.Code, want, w.Body)
		}
	}
	post("/incidents/"+incidentID+"/ack", "", 400)
	post("/incidents/missing/ack", "by=bob", 404)
	post("/incidents/"+incidentID+"/ack", "by=bob", 303)
	mustContain(t, s.page(t, "/incidents/"+incidentID), "bob is on it", "Give it back")
	post("/incidents/"+incidentID+"/unack", "", 400)
	post("/incidents/"+incidentID+"/unack", "by=carol", 303)
	mustContain(t, s.page(t, "/incidents/"+incidentID), "Nobody is on it yet")

	silence := func(method, path, body string) {
		t.Helper()
		if w := s.do(t, method, "/api/v1/silences"+path, body); w.Code != 200 {
			t.Errorf("%s %s: %d: %s", method, path, w.Code, w.Body)
		}
	}
	silence("POST", "", `{"by":"bob","matchers":[{"field":"service","value":"orders"},{"field":"cause","value":"failover"}],"duration":"4h","comment":"maintenance"}`)
	mustContain(t, s.get(t, "/api/v1/silences").Body.String(), `"comment":"maintenance"`, `"active":true`)
	for _, path := range []string{"/", "/incidents", "/incidents/" + incidentID} {
		mustContain(t, s.page(t, path), "silenced by bob until", "maintenance")
	}
	silence("DELETE", "/1", `{"by":"eve"}`)
	mustContain(t, s.get(t, "/api/v1/silences").Body.String(), `"ended_by":"eve"`, `"active":false`)
	mustNotContain(t, s.page(t, "/incidents/"+incidentID), "silenced")
	post("/silences", "incident="+incidentID+"&hours=4&by=bob&comment=x", 404) // that is for the API

	lines, err := s.store.AuditLines(t.Context(), store.Page{Limit: 10})
	if err != nil || len(lines) != 4 {
		t.Fatalf("%d audit lines, want 4: %v", len(lines), err)
	}
	for i, want := range []string{"end silence", "silence", "unacknowledge", "acknowledge"} {
		if lines[i].Action != want || lines[i].Remote == "" || !strings.HasSuffix(lines[i].Who, " (not authenticated)") || len(lines[i].Who) < len("bob (not authenticated)") {
			t.Errorf("audit line %+v, want %s", lines[i], want)
		}
	}
	if n := strings.Count(log.String(), "msg=audit"); n != 4 {
		t.Errorf("%d audit lines in the log, want 4", n)
	}
}

// A form that is refused has no address to be wrong.
func TestRefusedForm(t *testing.T) {
	s := newSite(t, withWrites)
	s.explain(t)
	for lang, want := range map[string]string{"en": "<h1>This was not done</h1>", "zh": "<h1>操作未执行</h1>"} {
		w := s.do(t, http.MethodPost, "/incidents/"+incidentID+"/ack", "by=+", "Accept-Language", lang)
		mustContain(t, w.Body.String(), want, "the name is empty")
	}
	mustContain(t, s.get(t, "/events?from=x").Body.String(), "This address has a wrong filter")
}

// A service chooses its name.
func TestSilenceOfAServiceThatIsCalledAsAPattern(t *testing.T) {
	s := newSite(t, withWrites)
	s.explain(t)
	const id = incidentID + "b"
	s.explain(t, func(i *incident.Incident) { i.ID, i.Key, i.Service = id, "other", "*" })
	w := s.do(t, http.MethodPost, "/api/v1/silences", `{"by":"bob","matchers":[{"field":"service","value":"*","exact":true}],"duration":"1h","comment":"noise"}`)
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	for id, want := range map[string]bool{id: true, incidentID: false} {
		if i, err := s.store.Incident(t.Context(), id); err != nil || i.Silenced() != want {
			t.Errorf("%q is silenced: %t, %v", i.Service, i.Silenced(), err)
		}
	}
}

func TestWritesCarryTheAuthenticatedName(t *testing.T) {
	s := newSite(t, withWrites, func(c *web.Config) { c.Auth = newAuth(t) })
	s.explain(t)
	w := s.do(t, http.MethodPost, "/incidents/"+incidentID+"/ack", "by=mallory",
		"Authorization", basicAlice)
	if w.Code != 303 {
		t.Fatal(w.Code)
	}
	i, err := s.store.Incident(t.Context(), incidentID)
	if err != nil || i.AckedBy != "alice" {
		t.Errorf("acknowledged by %q, %v", i.AckedBy, err)
	}
}

func TestCrossOriginWritesAreRefused(t *testing.T) {
	s := newSite(t, withWrites, func(c *web.Config) { c.ExternalURL = "https://monitor.example.com" })
	s.explain(t)
	for _, tt := range []struct {
		name, value string
		want        int
	}{
		{"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "same-site", 403}, {"Origin", "https://evil.example", 403},
		{"Origin", "null", 403}, {"Sec-Fetch-Site", "same-origin", 303}, {"Origin", "https://monitor.example.com", 303},
	} {
		w := s.do(t, http.MethodPost, "/incidents/"+incidentID+"/ack", "by=bob", tt.name, tt.value)
		if w.Code != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.name, tt.value, w.Code, tt.want)
		}
	}
}

func TestHostsOfSettings(t *testing.T) {
	s := newSite(t, func(c *web.Config) {
		c.ExternalURL, c.AnyAddress = "https://monitor.example.com:8443", true
	})
	for host, want := range map[string]int{
		"monitor.example.com": 200, "Monitor.Example.com:9440": 200, "10.0.0.1:9440": 200, "[2001:db8::1]": 200,
		"evil.example": 421, "monitor.example.com.evil.example": 421, "": 421,
	} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
		r.Host = host
		if w := serve(s, r); w.Code != want {
			t.Errorf("host %q: %d, want %d", host, w.Code, want)
		}
	}
}

func TestAPI(t *testing.T) {
	s := newSite(t, withWrites)
	s.add(t, event("event-1"))
	s.explain(t)
	for _, route := range []string{"overview", "incidents", "incidents/" + incidentID, "events", "events/event-1", "timeline",
		"clusters", "services", "silences", "audit"} {
		if v := s.json(t, "/api/v1/"+route); len(v) == 0 {
			t.Errorf("%s is empty", route)
		}
	}
	if v := s.json(t, "/api/v1/overview"); v["open_incidents"] != 1.0 || v["broker_connected"] != true {
		t.Errorf("overview %v", v)
	}
	for _, route := range []string{"events/x", "incidents/x", "nothing"} {
		w := s.get(t, "/api/v1/"+route)
		if w.Code != 404 || !strings.HasPrefix(w.Body.String(), `{"error":`) {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
	done := func(method, path, body string, want int) {
		t.Helper()
		if w := s.do(t, method, "/api/v1/"+path, body); w.Code != want {
			t.Errorf("%s %s: %d, want %d: %s", method, path, w.Code, want, w.Body)
		}
	}
	done("POST", "silences", `{"by":"bob","matchers":[{"field":"service","value":"orders"}],"duration":"90m","comment":"c"}`, 200)
	done("POST", "silences", `{"by":"bob","matchers":[],"duration":"90m","comment":"c"}`, 400)
	done("DELETE", "silences/1", `{"by":"bob"}`, 200)
	done("DELETE", "silences/1", `{"by":"bob"}`, 404)
	done("DELETE", "silences/1", "", 400)
	done("DELETE", "silences/1", `{"who":"bob"}`, 400)
	done("DELETE", "silences/x", `{"by":"bob"}`, 404)
	if lines, err := s.store.AuditLines(t.Context(), store.Page{Limit: 10}); err != nil || len(lines) != 2 {
		t.Errorf("%d audit lines, %v", len(lines), err)
	}
}

// A body is not read beyond its bound, wherever it goes.
func TestLargeBodies(t *testing.T) {
	s := newSite(t, withWrites)
	s.explain(t)
	for path, body := range map[string]string{
		"/incidents/" + incidentID + "/ack": "by=bob&x=" + strings.Repeat("x", 64<<10),
		"/api/v1/silences":                  "{" + strings.Repeat(" ", 64<<10) + `"matchers":[{"field":"service","value":"orders"}],"duration":"90m","by":"bob","comment":"c"}`,
	} {
		if w := s.do(t, http.MethodPost, path, body); w.Code != 400 {
			t.Errorf("%s with a large body: %d, want 400", path, w.Code)
		}
	}
	if list, err := s.store.AllSilences(t.Context(), store.Page{Limit: 10}); err != nil || len(list) != 0 {
		t.Errorf("%d silences, %v", len(list), err)
	}
	if i, err := s.store.Incident(t.Context(), incidentID); err != nil || i.AckedBy != "" {
		t.Errorf("acknowledged by %q, %v", i.AckedBy, err)
	}
}
