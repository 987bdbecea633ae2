package httpguard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
	"github.com/belaygo/belay/relay/httprelay"
)

// A message of Belay's own whose operation ran again, with another body, was handled.
func TestChangedBody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(s.charge)
	p, err := httprelay.New(server.URL+"/other", httprelay.Config{Source: "/shop", Header: http.Header{"User": {"shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for body, media := range map[string]string{`{"left":41}`: "application/json", "left=40": "application/x-www-form-urlencoded"} {
		m := relay.Message{ID: "m1", Topic: "sale.made", Time: time.Now(), Body: []byte(body), Headers: map[string]string{"content-type": media}}
		if err := p.Publish(bg, m); err != nil {
			t.Errorf("body %s: %v", body, err)
		}
	}
	s.wantRan(1)
	s.wantCents(999)
}

// A message that took effect is accepted, also once its answer is purged: its key would wait for it.
func TestForgottenMessage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(s.charge)
	p, err := httprelay.New(server.URL+"/pay/1", httprelay.Config{Source: "/shop", Header: http.Header{"User": {"shop"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for range 2 {
		if err := p.Publish(bg, relay.Message{ID: "m1", Topic: "sale.made", Time: time.Now(), Body: []byte("1")}); err != nil {
			t.Error(err)
		}
		if err := s.db.Exec("DELETE FROM belay_answer").Error; err != nil {
			t.Fatal(err)
		}
	}
	s.wantRan(1)
}

// A message of another service under an id that was served before is no repeat.
func TestMessageOfAnotherService(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(s.charge)
	send := func(source string) error {
		p, err := httprelay.New(server.URL+"/other", httprelay.Config{Source: source, Header: http.Header{"User": {"shop"}}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		return p.Publish(bg, relay.Message{ID: "m1", Topic: "sale.made", Time: time.Now(), Body: []byte("1")})
	}
	if err := send("/shop"); err != nil {
		t.Fatal(err)
	}
	if err := send("/stock"); err == nil {
		t.Error("the message of another service is accepted, and not handled")
	}
	s.wantRan(1)
}

// A call on a message goes out with the body of its first run, or not at all.
func TestCallOnAChangedMessage(t *testing.T) {
	t.Parallel()
	printOf := func(body string) once.Print {
		r := httptest.NewRequest(http.MethodPost, "/charge", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", "m1")
		r.Header.Set("Belay-Message", "m1")
		request, err := httpguard.RequestOf(r, "charge", "shop", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return request.Print
	}
	if printOf("1") == printOf("2") {
		t.Error("two bodies are one request")
	}
}

// The header of a message says nothing of requests without it, and nothing of another key.
func TestHeaderOfAMessage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(s.charge)
	ask := func(key, message, body string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(bg, http.MethodPost, server.URL+"/other", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User", "ann")
		r.Header.Set("Idempotency-Key", key)
		r.Header.Set("Belay-Message", message)
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		key, message, body string
		want               int
	}{
		{"a", "", "1", http.StatusCreated},
		{"a", "a", "2", http.StatusUnprocessableEntity},
		{"a", "a", "1", http.StatusUnprocessableEntity},
		{"b", "b", "1", http.StatusCreated},
		{"b", "", "1", http.StatusUnprocessableEntity},
		{"c", "b", "1", http.StatusCreated},
		{"c", "b", "2", http.StatusUnprocessableEntity},
	} {
		if got := ask(c.key, c.message, c.body); got != c.want {
			t.Errorf("%+v: answered %d", c, got)
		}
	}
	s.wantRan(3)
}
