package httpguard_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
)

// raw sends the bytes of a request on a connection of its own.
func raw(t *testing.T, server *httptest.Server, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	testdb.WantNil(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n"))
	testdb.WantNil(t, err)
	return conn, bufio.NewReader(conn)
}

// answered reads an answer.
func answered(t *testing.T, r *bufio.Reader) got {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	testdb.WantNil(t, err)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	testdb.WantNil(t, err)
	return got{res.StatusCode, res.Header, string(all)}
}

const head = "POST /pay/1 HTTP/1.1\nHost: a\nUser: eve\n"

// TestRaw: requests as no client library sends them.
func TestRaw(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text    string
		status  int
		problem string
	}{
		"two keys":           {head + "Idempotency-Key: a\nIdempotency-Key: a\n\n", 400, "#invalid"},
		"a list of keys":     {head + "Idempotency-Key: \"a\", \"b\"\n\n", 400, "#invalid"},
		"an empty key":       {head + "Idempotency-Key:\n\n", 400, "#invalid"},
		"a key in any case":  {head + "idempotency-KEY: \"a\"\n\n", 201, ""},
		"spaces around it":   {head + "Idempotency-Key: \t \"a\" \n\n", 201, ""},
		"with a parameter":   {head + "Idempotency-Key: \"a\";v=1\n\n", 201, ""},
		"chunks":             {head + "Idempotency-Key: a\nTransfer-Encoding: chunked\n\n2\n{}\n0\n\n", 201, ""},
		"HTTP/1.0":           {"POST /pay/1 HTTP/1.0\nUser: eve\nIdempotency-Key: a\nContent-Length: 2\n\n{}", 201, ""},
		"a bad chunk":        {head + "Idempotency-Key: a\nTransfer-Encoding: chunked\n\nx\n", 400, "#invalid"},
		"a key of 256 bytes": {head + "Idempotency-Key: " + strings.Repeat("a", 256) + "\n\n", 400, "#invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.cfg.Docs = "https://example.com/errors"
			server := s.serve(s.charge)
			for range 2 {
				_, r := raw(t, server, tt.text)
				got := answered(t, r)
				if got.want(t, tt.status, ""); tt.problem != "" && !strings.Contains(got.body, tt.problem) {
					t.Errorf("the problem is %s, want %s", got.body, tt.problem)
				}
			}
			if tt.status == 201 {
				s.wantRan(1)
				s.wantCents(999)
			} else {
				s.wantRan(0)
			}
		})
	}
}

// TestContinue: a client that asks first is told to send its body, which is the request's.
func TestContinue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(s.charge)
	for range 2 {
		conn, r := raw(t, server, head+"Idempotency-Key: a\nExpect: 100-continue\nContent-Length: 2\n\n")
		line, err := r.ReadString('\n')
		testdb.WantNil(t, err)
		if !strings.Contains(line, "100 Continue") {
			t.Fatalf("the server says %q", line)
		}
		_, err = r.ReadString('\n')
		testdb.WantNil(t, err)
		fmt.Fprint(conn, "{}")
		answered(t, r).want(t, http.StatusCreated, "")
	}
	_, r := raw(t, server, head+"Expect: 100-continue\nContent-Length: 2\n\n") // no key: no body is asked for
	answered(t, r).want(t, http.StatusBadRequest, "")
	s.wantRan(1)
}

// TestHalfARequest: a client that leaves in the middle of its body has asked for nothing.
func TestHalfARequest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(s.charge)
	conn, _ := raw(t, server, head+"Idempotency-Key: a\nContent-Length: 100\n\n{")
	conn.Close()
	server.Close() // which waits for its handlers
	s.wantRan(0)
	s.wantCents(1000)
}

// TestHalfAnAnswer: a client that reads no more than a part of its answer gets all of it by
// asking again.
func TestHalfAnAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	long := strings.Repeat("all of it. ", 5000)
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.charge(w, r)
		write(w, long)
	})
	conn, r := raw(t, server, head+"Idempotency-Key: a\nContent-Length: 0\n\n")
	_, err := r.ReadString('\n')
	testdb.WantNil(t, err)
	conn.Close()
	got := post(t, server, "/pay/1", "", "Idempotency-Key", "a")
	got.want(t, http.StatusCreated, "")
	if !strings.HasSuffix(got.body, long) {
		t.Errorf("the answer has %d bytes", len(got.body))
	}
	s.wantRan(1)
	s.wantCents(999)
}

// TestPipeline: two requests that are sent at once on one connection are two requests, or
// one and its repeat.
func TestPipeline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(s.charge)
	ask := func(key string) string { return head + "Idempotency-Key: " + key + "\nContent-Length: 0\n\n" }
	_, r := raw(t, server, ask("a")+ask("a")+ask("b"))
	for _, replayed := range []string{"", "true", ""} {
		got := answered(t, r)
		if got.want(t, http.StatusCreated, ""); got.header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("replayed is %q, want %q", got.header.Get("Idempotent-Replayed"), replayed)
		}
	}
	s.wantRan(2)
	s.wantCents(998)
}

// TestHTTP2: the same bytes over HTTP/2, whichever protocol the first request came by.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	old := s.serve(s.charge)
	server := httptest.NewUnstartedServer(old.Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	first := post(t, old, "/pay/1", "{}", "Idempotency-Key", "a")
	got := post(t, server, "/pay/1", "{}", "Idempotency-Key", "a")
	if got.want(t, http.StatusCreated, ""); got.body != first.body || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("over HTTP/2 the answer is %+v, want %+v", got, first)
	}
	post(t, server, "/pay/1", "{}", "Idempotency-Key", "b").want(t, http.StatusCreated, "")
	post(t, old, "/pay/1", "{}", "Idempotency-Key", "b").want(t, http.StatusCreated, "")
	s.wantRan(2)
	s.wantCents(998)
}

// TestShutdown: a server that is told to end waits for what is being served.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	runs, end := make(chan bool), make(chan bool)
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		close(runs)
		<-end
		s.charge(w, r)
	})
	served := make(chan got)
	go func() { served <- post(t, server, "/pay/1", "", "Idempotency-Key", "a") }()
	<-runs
	down := make(chan error)
	go func() { down <- server.Config.Shutdown(context.Background()) }()
	testwait.Until(t, "no more connections are taken", func() bool {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(end)
	(<-served).want(t, http.StatusCreated, "")
	testdb.WantNil(t, <-down)
	s.wantCents(999)
}
