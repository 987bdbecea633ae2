package httprelay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/relay"
	"github.com/belaygo/belay/relay/httprelay"
)

var bg = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func open(t *testing.T, url string, cfg httprelay.Config) httprelay.Publisher {
	t.Helper()
	cfg.Source = "/orders"
	p, err := httprelay.New(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestRequest(t *testing.T) {
	t.Parallel()
	var got http.Header
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	})
	p := open(t, url, httprelay.Config{Header: http.Header{"Authorization": {"Bearer x"}}})
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if err := p.Publish(bg, relay.Message{
		ID: `a"1`, Key: "item:é %", Topic: "sale.made", Time: time.UnixMilli(1_800_000_000_500), Body: []byte("{}"),
		Headers: map[string]string{"content-type": "application/json", "traceparent": trace, "Tenant": "a b", "X-Odd\n": "1", "specversion": "9"},
	}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": "a%221", "Ce-Source": "/orders", "Ce-Type": "sale.made", "Ce-Time": "2027-01-15T08:00:00.5Z",
		"Ce-Partitionkey": "item:%C3%A9%20%25", "Ce-Tenant": "a%20b", "Content-Type": "application/json", "Traceparent": trace,
		"Idempotency-Key": `"a\"1"`, "Belay-Message": `"a\"1"`, "Authorization": "Bearer x",
	} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	if string(body) != "{}" {
		t.Errorf("body is %q", body)
	}
}

// The content type and the trace of a message are sent as they are, however their names are spelt, without
// what ends a header.
func TestHeadersAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	var got http.Header
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	p := open(t, url, httprelay.Config{})
	for _, c := range []struct{ name, value, want string }{
		{"content-type", "application/json; charset=utf-8", "application/json; charset=utf-8"},
		{"Content-Type", `text/plain; charset="iso-8859-1"`, `text/plain; charset="iso-8859-1"`},
		{"Content-Type", "text/plain\r\nX-Odd: 1\x00\x7f", "text/plainX-Odd: 1"},
		{"Content-Type", "\r\n", "application/octet-stream"},
		{"tracestate", "a=b c%,d=1", "a=b c%,d=1"},
		{"TraceState", "é=1", "é=1"},
	} {
		if err := p.Publish(bg, relay.Message{ID: "1", Headers: map[string]string{c.name: c.value}}); err != nil {
			t.Fatal(err)
		}
		if got.Get(c.name) != c.want || got.Get("X-Odd") != "" {
			t.Errorf("%s is %q, want %q", c.name, got.Get(c.name), c.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	status := 0
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	})
	p := open(t, url, httprelay.Config{})
	for code, want := range map[int]error{
		200: nil, 204: nil,
		302: errPlain, 400: errPlain, 404: errPlain, 500: errPlain,
		429: relay.ErrUnavailable, 503: relay.ErrUnavailable,
		410: relay.ErrRejected, 413: relay.ErrRejected,
	} {
		status = code
		if got := kind(p.Publish(bg, relay.Message{ID: "1"})); got != want { //nolint:errorlint // kind returns a sentinel
			t.Errorf("%d: error is %v, want %v", code, got, want)
		}
	}
}

var errPlain = errors.New("another error")

func kind(err error) error {
	for _, known := range []error{relay.ErrUnavailable, relay.ErrRejected} {
		if errors.Is(err, known) {
			return known
		}
	}
	if err != nil {
		return errPlain
	}
	return nil
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	p := open(t, "http://127.0.0.1:1", httprelay.Config{})
	if err := p.Publish(bg, relay.Message{ID: "1"}); !errors.Is(err, relay.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
}

// An endpoint that is slow with one message does not pause the others.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	asked, over := make(chan struct{}), make(chan struct{})
	url := serve(t, func(http.ResponseWriter, *http.Request) { close(asked); <-over })
	defer close(over)
	p := open(t, url, httprelay.Config{})
	ctx, cancel := context.WithCancel(bg)
	go func() { <-asked; cancel() }()
	if err := p.Publish(ctx, relay.Message{ID: "1"}); !errors.Is(err, context.Canceled) || errors.Is(err, relay.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
}

// Nor does one that the client's own limit has cut.
func TestNoAnswerWithinTheClientsLimit(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	url := serve(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	p := open(t, url, httprelay.Config{Client: &http.Client{Timeout: 50 * time.Millisecond}})
	if err := p.Publish(bg, relay.Message{ID: "1"}); err == nil || errors.Is(err, relay.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
}

// The address of a hook may be a password: no error quotes it.
func TestErrorsDoNotQuoteTheAddress(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	silent := serve(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	for _, host := range []string{"http://127.0.0.1:1", silent} {
		p := open(t, host+"/hooks/T0SECRET?code=S3CR3T", httprelay.Config{Client: &http.Client{Timeout: 50 * time.Millisecond}})
		err := p.Publish(bg, relay.Message{ID: "1"})
		if err == nil || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("error is %v", err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, source string }{{"ftp://host", "/a"}, {"http://", "/a"}, {"http://host", ""}, {"http://host", "%zz"}, {"\x7f", "/a"}} {
		if _, err := httprelay.New(c.url, httprelay.Config{Source: c.source}); err == nil {
			t.Error(fmt.Sprint("no error for ", c))
		}
	}
}
