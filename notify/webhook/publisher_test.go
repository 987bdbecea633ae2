package webhook_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/webhook"
)

// TestPublishedEvent: an event and a heartbeat are posted as CloudEvents in structured mode.
func TestPublishedEvent(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	p := newPublisher(t, m.URL+"/", webhook.Config{})
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Fatal(err)
	}
	want, err := event(1).MarshalJSON()
	if err != nil || !bytes.Equal(m.bodies[0], want) || m.header.Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("posted %s, %v, %v", m.bodies[0], m.header, err)
	}
	beat := heartbeat.Heartbeat{ID: "beat", Service: "orders", At: time.Now(), Interval: time.Minute}
	if err := p.PublishHeartbeat(t.Context(), beat); err != nil {
		t.Error(err)
	}
	var read heartbeat.Heartbeat
	if err := read.UnmarshalJSON(m.bodies[1]); err != nil || read.ID != "beat" {
		t.Errorf("posted %s, %v", m.bodies[1], err)
	}
	if n := testmetric.Sum(t, p, "belay_webhook_published_total", "result", "stored"); n != 1 {
		t.Errorf("%v events are counted, want 1", n)
	}
}

// TestPublisherHandsOnANewerEvent: members that this version does not know are kept.
func TestPublisherHandsOnANewerEvent(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	p := newPublisher(t, m.URL, webhook.Config{})
	body, err := event(1).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	body = bytes.Replace(body, []byte(`"data":{`), []byte(`"data":{"verdict2":"new",`), 1)
	if err := p.PublishRaw(t.Context(), body); err != nil || !bytes.Equal(m.bodies[0], body) {
		t.Errorf("posted %s, %v", m.bodies[0], err)
	}
	if err := p.PublishRaw(t.Context(), []byte("no event")); !errors.Is(err, notify.ErrInvalidEvent) || m.requests() != 1 {
		t.Errorf("no event: %v after %d requests", err, m.requests())
	}
}

// TestOnlyTheMonitorsAnswerCounts: whatever else answers, and however, has not stored the
// event.
func TestOnlyTheMonitorsAnswerCounts(t *testing.T) {
	other := httptest.NewServer(says(200, fmt.Sprintf(`{"taken":%q}`, event(1).ID)))
	defer other.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string // in the error
	}{
		"a page":           {says(200, "<html>Welcome</html>"), "check the address"},
		"nothing":          {says(200, ""), "check the address"},
		"204":              {says(204, ""), "answered 204"},
		"another event":    {says(202, `{"taken":"0199a1b2-0000-7000-8000-000000000002"}`), "check the address"},
		"no status for it": {says(206, fmt.Sprintf(`{"taken":%q}`, event(1).ID)), "answered 206"},
		"a redirect":       {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, "redirects are not followed"},
		"a kept redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "redirects are not followed"},
		"another server": {says(404, "not found"), "answered 404"},
		"a proxy's 400":  {says(400, "The plain HTTP request was sent to HTTPS port"), "answered 400"},
		"a proxy's 413":  {says(413, "<html>"), "answered 413"},
		"a proxy's 502":  {says(502, "bad gateway"), "answered 502"},
		"an answer cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"tak`)
		}, "read the answer"},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor(t, httptest.NewServer)
			m.answers(c.answer)
			p := newPublisher(t, m.URL, webhook.Config{})
			err := p.Publish(t.Context(), event(1))
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, notify.ErrInvalidEvent) {
				t.Errorf("err = %v, want one with %q", err, c.want)
			}
			if n := testmetric.Sum(t, p, "belay_webhook_published_total", "result", "failed"); n != 1 {
				t.Errorf("%v failures are counted, want 1", n)
			}
		})
	}
}

// TestRejectedEvent: what the monitor can never take is told apart from failures.
func TestRejectedEvent(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	p := newPublisher(t, m.URL, webhook.Config{})
	for _, code := range []int{400, 413} {
		m.answers(says(code, `{"rejected":true,"error":"verdict \"`+"\\u001b"+`new\" is unknown"}`))
		err := p.Publish(t.Context(), event(1))
		if !errors.Is(err, notify.ErrInvalidEvent) || !strings.Contains(err.Error(), "is unknown") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%d: err = %v, want ErrInvalidEvent with the reason", code, err)
		}
	}
	large := event(2)
	large.Keys = []string{strings.Repeat("k", 256<<10)}
	if err := p.Publish(t.Context(), large); !errors.Is(err, notify.ErrInvalidEvent) || m.requests() != 2 {
		t.Errorf("a large event: %v after %d requests", err, m.requests())
	}
	if n := testmetric.Sum(t, p, "belay_webhook_published_total", "result", "rejected"); n != 3 {
		t.Errorf("%v rejections are counted, want 3", n)
	}
}

// TestBusyMonitorAsksForAPause: the error says for how long, as an outbox reads it.
func TestBusyMonitorAsksForAPause(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	p := newPublisher(t, m.URL, webhook.Config{})
	for _, c := range []struct {
		code        int
		header      string
		least, most time.Duration
	}{
		{429, "7", 7 * time.Second, 7 * time.Second},
		{503, "0", 0, 0},
		{503, "", 0, 0},
		{429, "soon", 0, 0},
		{429, "-5", 0, 0},
		{429, "99999999999999999999", 0, 0},
		{503, "4294967295", time.Hour, time.Hour},
		{503, time.Now().Add(30 * time.Minute).UTC().Format(http.TimeFormat), time.Minute, 30 * time.Minute},
		{503, time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat), 0, 0},
	} {
		m.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", c.header)
			w.WriteHeader(c.code)
		})
		err := p.Publish(t.Context(), event(1))
		var busy interface{ RetryAfter() time.Duration }
		if !errors.As(err, &busy) || busy.RetryAfter() < c.least || busy.RetryAfter() > c.most {
			t.Errorf("%d with %q: err = %v, want one that asks for %v", c.code, c.header, err, c.most)
		}
	}
}

// TestRefusedTokenIsLoggedOncePerChange: a person must hear of it, and not for each event.
// The token is shown nowhere.
func TestRefusedTokenIsLoggedOncePerChange(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	var logged testlog.Buffer
	p := newPublisher(t, m.URL, webhook.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	refusals := func() int { return strings.Count(logged.String(), "level=ERROR") }
	m.answers(says(401, `{"error":"Bearer `+token+` is wrong"}`))
	for n := range 3 {
		err := p.Publish(t.Context(), event(n))
		if err == nil || errors.Is(err, notify.ErrInvalidEvent) || strings.Contains(err.Error(), token) {
			t.Errorf("err = %v, want one without the token", err)
		}
	}
	if n := refusals(); n != 1 {
		t.Errorf("logged %d times, want once\n%s", n, logged.String())
	}
	m.answers(says(403, `{"error":"not for this service"}`))
	for n := range 2 {
		_ = p.Publish(t.Context(), event(n))
	}
	m.answers(says(500, ""))
	_ = p.Publish(t.Context(), event(1))
	m.answers(says(403, `{"error":"not for this service"}`))
	_ = p.Publish(t.Context(), event(1))
	if n := refusals(); n != 2 {
		t.Errorf("logged %d times after another refusal, want twice\n%s", n, logged.String())
	}
	m.answers(nil)
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(logged.String(), "takes events again") || strings.Contains(logged.String(), token) {
		t.Errorf("logged\n%s", logged.String())
	}
	if n := testmetric.Sum(t, p, "belay_webhook_published_total", "result", "unauthorized"); n != 6 {
		t.Errorf("%v refusals are counted, want 6", n)
	}
}

// TestSilentMonitorCostsLittleTime: a Publish ends with its Timeout, and after some that
// failed at once.
func TestSilentMonitorCostsLittleTime(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := newPublisher(t, "http://"+ln.Addr().String(), webhook.Config{Timeout: 20 * time.Millisecond})
	for range 5 {
		if err := p.Publish(t.Context(), event(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("err = %v, want that of the Timeout", err)
		}
	}
	if err := p.Publish(t.Context(), event(1)); err == nil || !strings.Contains(err.Error(), "circuit breaker") {
		t.Errorf("err = %v, want that of the breaker", err)
	}
	if state := testmetric.Sum(t, p, "belay_webhook_breaker_state"); state != 2 {
		t.Errorf("the breaker's state is %v, want 2", state)
	}
	m := newMonitor(t, func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Listener.Close()
		s.Listener = ln
		s.Start()
		return s
	})
	testwait.Until(t, "an event is published", func() bool { return p.Publish(t.Context(), event(2)) == nil })
	if m.requests() == 0 {
		t.Error("nothing was posted")
	}
}

// TestTLS: the monitor is known by the files that the address names, and to nobody else
// is anything said.
func TestTLS(t *testing.T) {
	m := newMonitor(t, func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.EnableHTTP2 = true
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.StartTLS()
		return s
	})
	file := filepath.Join(t.TempDir(), "ca.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPublisher(t, m.URL+"?cacertfile="+url.QueryEscape(file), webhook.Config{})
	if err := p.Publish(t.Context(), event(1)); err != nil {
		t.Error(err)
	}
	secure := m.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	secure.NextProtos = []string{"h2", "http/1.1"} // as those of a program that speaks both
	p = newPublisher(t, m.URL, webhook.Config{TLS: secure})
	if err := p.Publish(t.Context(), event(2)); err != nil {
		t.Error(err)
	}
	p = newPublisher(t, m.URL, webhook.Config{})
	err := p.Publish(t.Context(), event(3))
	if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) || m.requests() != 2 {
		t.Errorf("err = %v after %d requests, want one about the certificate", err, m.requests())
	}
}

// TestDiagnose: only an answer for this service is guard-monitor's.
func TestDiagnose(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"sound":            {says(200, `{"service":"a & b"}`), ""},
		"an unknown token": {says(401, `{"service":"a & b","error":"the token is `+token+`"}`), "error monitor-token: "},
		"of others":        {says(403, `{"service":"a & b","error":"not for this"}`), "error monitor-token: "},
		"no room":          {says(503, `{"service":"a & b","error":"the store takes nothing"}`), "look at the log of guard-monitor"},
		"another service":  {says(200, `{"service":"c"}`), "error monitor-server: "},
		"a page":           {says(200, "<html>Welcome</html>"), "answers 200, but not as a guard-monitor"},
		"a proxy's login":  {says(401, `{"error":"who are you"}`), "error monitor-server: "},
		"without ingest":   {says(404, `{"error":"see the setting ingest"}`), "answers 404, but not as a guard-monitor with the setting ingest does: see the setting"},
		"a redirect":       {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "answers 302"},
		"no answer at all": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor(t, httptest.NewServer)
			m.answers(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/api/v1/ingest" || r.FormValue("service") != "a & b" || r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("asked by %s %s", r.Method, r.URL)
				}
				c.answer(w, r)
			})
			p := newPublisher(t, m.URL, webhook.Config{})
			found := fmt.Sprint(p.Diagnose(t.Context(), "a & b"))
			if found == "[]" != (c.want == "") || !strings.Contains(found, c.want) || strings.Contains(found, token) {
				t.Errorf("found %s, want %q", found, c.want)
			}
		})
	}
}

// TestEventNamesItsService: guard-monitor reads nothing of an event whose token is wrong, and
// logs this name.
func TestEventNamesItsService(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	var asked string
	m.answers(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Query().Get("service") })
	_ = newPublisher(t, m.URL, webhook.Config{}).Publish(t.Context(), event(1))
	if asked != "orders" {
		t.Errorf("the service is %q", asked)
	}
}

// TestClose: what is under way ends, and nothing is sent afterwards.
func TestClose(t *testing.T) {
	m := newMonitor(t, httptest.NewServer)
	came, release := make(chan struct{}), make(chan struct{})
	m.answers(func(http.ResponseWriter, *http.Request) {
		close(came)
		<-release
	})
	defer close(release)
	p := newPublisher(t, m.URL, webhook.Config{})
	ended := make(chan error, 1)
	go func() { ended <- p.Publish(context.Background(), event(1)) }()
	<-came
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("err = %v", err)
	}
	if err := p.Publish(t.Context(), event(2)); err == nil || m.requests() != 1 {
		t.Errorf("err = %v after %d requests", err, m.requests())
	}
}

// TestNewRefuses: what is wrong is named, and neither the token nor the address is shown.
func TestNewRefuses(t *testing.T) {
	const secret = "secret-0123456789"
	for name, c := range map[string]struct {
		address string
		cfg     webhook.Config
		want    string
	}{
		"no token":            {"http://h", webhook.Config{}, "Token is empty"},
		"a short token":       {"http://h", webhook.Config{Token: "secret-"}, "shorter than 16"},
		"a line end":          {"http://h", webhook.Config{Token: secret + "\n"}, "line end"},
		"a negative time":     {"http://h", webhook.Config{Token: secret, Timeout: -1}, "Timeout"},
		"no address":          {"", webhook.Config{Token: secret}, "http://host"},
		"no scheme":           {"monitor:9440", webhook.Config{Token: secret}, "http://host"},
		"no scheme, a number": {"127.0.0.1:9440", webhook.Config{Token: secret}, "http://"},
		"another scheme":      {"amqp://user:" + secret + "@h", webhook.Config{Token: secret}, "http://host"},
		"no URL":              {"http://user:" + secret + "@h:port/%zz", webhook.Config{Token: secret}, "parsed"},
		"a password":          {"http://user:" + secret + "@h", webhook.Config{Token: secret}, "Config.Token"},
		"a parameter":         {"http://h?token=" + secret, webhook.Config{Token: secret}, "parameters"},
		"a wrong parameter":   {"https://h?cacertfile=%zz" + secret, webhook.Config{Token: secret}, "parameters"},
		"a semicolon":         {"https://h?cacertfile=ca.pem;certfile=" + secret, webhook.Config{Token: secret}, "parameters"},
		"files without https": {"http://h?cacertfile=a", webhook.Config{Token: secret}, "https"},
		"a missing file":      {"https://h?cacertfile=/missing", webhook.Config{Token: secret}, "/missing"},
	} {
		_, err := webhook.New(c.address, c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%s: err = %v, want one with %q", name, err, c.want)
		}
	}
}
