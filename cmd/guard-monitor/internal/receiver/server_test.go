package receiver_test

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

var update = flag.Bool("update", false, "write the golden files")

// got is a request as it arrived.
type got struct {
	method, uri string
	header      http.Header
	body        []byte
}

// server answers every request alike and keeps what it got.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	header map[string]string
	answer string
	got    []got
}

func newServer(t *testing.T, status int, answer string) *server {
	t.Helper()
	s := &server{status: status, answer: answer, header: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, got{r.Method, r.RequestURI, r.Header, body})
	for k, v := range s.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, s.answer)
}

// one returns the only request.
func (s *server) one(t *testing.T) got {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) != 1 {
		t.Fatalf("%d requests, want 1", len(s.got))
	}
	return s.got[0]
}

// bodies returns all that came, one a line.
func (s *server) bodies() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all strings.Builder
	for _, g := range s.got {
		all.Write(g.body)
		all.WriteByte('\n')
	}
	return all.String()
}

// now is when messages are signed in these tests: 1777863721500 ms.
var now = time.Date(2026, 5, 4, 3, 2, 1, 5e8, time.UTC)

func newReceiver(t *testing.T, cfg receiver.Config) *receiver.Receiver {
	t.Helper()
	cfg.Name = "night"
	cfg.Now = func() time.Time { return now }
	cfg.Client = &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r, err := receiver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// golden compares body byte by byte with a file of testdata.
func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, append(body, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(body)+"\n" != string(want) {
		t.Errorf("body\n%s\nwant, as in %s,\n%s", body, path, want)
	}
}

// hostile would command a terminal, a chat or a browser.
const hostile = "order:1\n\x1b[2J<@everyone> <!channel> <b>&[x](http://evil.example)"

func notification() *receiver.Notification {
	begin := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	return &receiver.Notification{
		GroupKey:    `{cause="failover", service="orders"}`,
		GroupLabels: map[string]string{"service": "orders", "cause": "failover"},
		Reason:      "first notification",
		ExternalURL: "http://127.0.0.1:9440/",
		More:        2,
		Alerts: []receiver.Alert{
			{
				Labels: map[string]string{"alertname": "BelayIncident", "service": "orders", "cause": "failover", "shard": "0-5460"},
				Annotations: map[string]string{
					receiver.AnnotationSummary:     "orders: locks failed, cause failover (confidence high)",
					receiver.AnnotationDescription: "3 events, 5 failures, last of key " + hostile,
					receiver.AnnotationEvidence:    "127.0.0.1:7002 became master, epoch 6 to 7\n127.0.0.1:7001 was not reached",
					receiver.AnnotationNext:        "Check why 127.0.0.1:7001 ended.",
					receiver.AnnotationRunbook:     "https://example.com/docs/alerts/failover.md",
				},
				StartsAt: begin,
				URL:      "http://127.0.0.1:9440/incidents/1",
			},
			{
				Labels: map[string]string{"alertname": "BelayIncident", "service": "orders", "cause": "failover", "shard": "5461-10922"},
				Annotations: map[string]string{
					receiver.AnnotationSummary: "订单: 锁失效",
				},
				StartsAt: begin, EndsAt: begin.Add(time.Minute),
			},
		},
	}
}
