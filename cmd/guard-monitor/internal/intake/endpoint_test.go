package intake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/ingest"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/notify"
)

const (
	orders = "token-of-the-orders"
	all    = "token-of-everybody"
	late   = "token-of-the-latest"
)

// A shelf is a store in memory, which fails as it is told.
type shelf struct {
	mu     sync.Mutex
	events map[string][]byte
	beats  []heartbeat.Heartbeat
	err    error
	wait   chan struct{} // nil: it does not wait
}

func (s *shelf) take(ctx context.Context, ev notify.Event, raw []byte, _ string) (added bool, err error) {
	if s.wait != nil {
		<-s.wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(ctx.Err(), s.err); err != nil {
		return false, err
	}
	_, had := s.events[ev.ID]
	s.events[ev.ID] = raw
	return !had, nil
}

func (s *shelf) hear(ctx context.Context, h heartbeat.Heartbeat, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(ctx.Err(), s.err); err != nil {
		return err
	}
	s.beats = append(s.beats, h)
	return nil
}

func (s *shelf) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func newEndpoint(t *testing.T) (*intake.Endpoint, *shelf) {
	t.Helper()
	s := &shelf{events: make(map[string][]byte)}
	e, err := intake.NewEndpoint(intake.EndpointConfig{
		Senders: []intake.Sender{
			{Name: "orders", Token: orders, Services: []string{"orders", "orders-worker"}},
			{Name: "all", Token: all, Services: []string{intake.AnyService}},
			{Name: "late", Token: late, Services: []string{"orders"}},
		},
		Take: s.take, Heartbeat: s.hear, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

// post posts a body and returns the response with its JSON.
func post(t *testing.T, e *intake.Endpoint, token string, body []byte) (*httptest.ResponseRecorder, ingest.Answer) {
	t.Helper()
	return postWithin(t.Context(), t, e, token, body)
}

func postWithin(ctx context.Context, t *testing.T, e *intake.Endpoint, token string, body []byte) (*httptest.ResponseRecorder, ingest.Answer) {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, ingest.Path, bytes.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	var a ingest.Answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil && w.Body.Len() > 0 {
		t.Errorf("the answer is no JSON: %v\n%s", err, w.Body)
	}
	return w, a
}

func encoded(t *testing.T, v json.Marshaler) []byte {
	t.Helper()
	body, err := v.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestEndpointStoresOnce: 202 for a new event, 200 for a repeated one, with its id.
func TestEndpointStoresOnce(t *testing.T) {
	e, s := newEndpoint(t)
	body := encoded(t, event(1))
	for _, want := range []int{202, 200, 200} {
		w, a := post(t, e, orders, body)
		if w.Code != want || a != (ingest.Answer{Taken: event(1).ID}) {
			t.Errorf("answered %d %+v, want %d", w.Code, a, want)
		}
	}
	if !bytes.Equal(s.events[event(1).ID], body) || len(s.events) != 1 {
		t.Errorf("stored %s", s.events)
	}
}

// TestEndpointAnswersAfterTheStore: while the store works, and after it has failed, nothing
// says that the event is taken.
func TestEndpointAnswersAfterTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := newEndpoint(t)
		s.wait = make(chan struct{})
		answered := make(chan int, 1)
		go func() {
			w, _ := post(t, e, orders, encoded(t, event(1)))
			answered <- w.Code
		}()
		synctest.Wait()
		select {
		case code := <-answered:
			t.Errorf("answered %d before the event was stored", code)
		default:
		}
		close(s.wait)
		if code := <-answered; code != 202 {
			t.Errorf("answered %d", code)
		}
		s.wait = nil
		s.fails(errors.New("disk full in /secret/path"))
		w, a := post(t, e, orders, encoded(t, event(2)))
		if w.Code != 503 || w.Header().Get("Retry-After") != "5" || a.Taken != "" || a.Rejected || strings.Contains(a.Error, "secret") {
			t.Errorf("answered %d %+v %v", w.Code, a, w.Header())
		}
		if err := e.Err(); !errors.Is(err, intake.ErrHandler) || e.Listening() {
			t.Errorf("after a failure: %v, listening %t", err, e.Listening())
		}
		s.fails(nil)
		if w, _ := post(t, e, orders, encoded(t, event(2))); w.Code != 202 || e.Err() != nil || !e.Listening() {
			t.Errorf("answered %d, then %v, listening %t", w.Code, e.Err(), e.Listening())
		}
		// A sender that never comes back must not leave the monitor unwell.
		s.fails(errors.New("disk full"))
		post(t, e, orders, encoded(t, event(3)))
		<-time.After(10 * time.Minute)
		if e.Err() != nil {
			t.Errorf("long after a failure: %v", e.Err())
		}
	})
}

// TestHeartbeatThatIsNotStored: the monitor has not heard it, so silence proves nothing.
func TestHeartbeatThatIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := newEndpoint(t)
		beat := encoded(t, heartbeat.Heartbeat{ID: "b", Service: "orders", At: time.Now(), Interval: time.Minute})
		s.fails(errors.New("disk full"))
		if w, a := post(t, e, orders, beat); w.Code != 503 || a.Taken != "" || e.Listening() {
			t.Errorf("answered %d %+v, listening %t", w.Code, a, e.Listening())
		}
		s.fails(nil)
		<-time.After(time.Minute)
		if w, a := post(t, e, orders, beat); w.Code != 202 || a.Taken != "b" || !e.Listening() {
			t.Errorf("answered %d %+v, listening %t", w.Code, a, e.Listening())
		}
	})
}

// TestEndpointIsForItsSenders: a token speaks for its services only, and without one
// nothing is read.
func TestEndpointIsForItsSenders(t *testing.T) {
	e, s := newEndpoint(t)
	worker, stranger := event(2), event(3)
	worker.Service, stranger.Service = "orders-worker", "payments"
	beat := heartbeat.Heartbeat{ID: "b", Service: "payments", At: time.Now(), Interval: time.Minute}
	for _, c := range []struct {
		name, token string
		body        json.Marshaler
		want        int
	}{
		{"no token", "", event(1), 401},
		{"another token", "token-of-nobody-at-all", event(1), 401},
		{"a part of it", orders[:len(orders)-1], event(1), 401},
		{"its service", orders, event(1), 202},
		{"its other service", orders, worker, 202},
		{"another service", orders, stranger, 403},
		{"a heartbeat of another service", orders, beat, 403},
		{"a token for all", all, stranger, 202},
		{"a heartbeat with a token for all", all, beat, 202},
	} {
		w, a := post(t, e, c.token, encoded(t, c.body))
		if w.Code != c.want || (a.Taken != "") != (c.want == 202) || a.Rejected {
			t.Errorf("%s: answered %d %+v, want %d", c.name, w.Code, a, c.want)
		}
	}
	if len(s.events) != 3 || len(s.beats) != 1 || s.beats[0].Service != "payments" {
		t.Errorf("stored %d events, heard %v", len(s.events), s.beats)
	}
	if n := testmetric.Sum(t, e, "belay_ingest_requests_total", "result", "unauthorized"); n != 5 {
		t.Errorf("%v refusals are counted, want 5", n)
	}
}

// TestEndpointIsAsked: a check says whether an event of a service would be taken, and leaves
// nothing.
func TestEndpointIsAsked(t *testing.T) {
	e, s := newEndpoint(t)
	ask := func(token, service string) (int, ingest.Answer) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, ingest.CheckPath+"?"+url.Values{ingest.Service: {service}}.Encode(), nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		var a ingest.Answer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Error(err)
		}
		return w.Code, a
	}
	want := func(token, service string, want int) {
		t.Helper()
		code, a := ask(token, service)
		if code != want || a.Service != service || (a.Error == "") != (code == 200) || a.Taken != "" {
			t.Errorf("the service %q: answered %d %+v, want %d", service, code, a, want)
		}
	}
	want(orders, "orders-worker", 200)
	want(all, "a & b", 200)
	want(orders, "payments", 403)
	want(orders, "", 403)
	want("token-of-nobody-at-all", "orders", 401)
	s.fails(errors.New("disk full"))
	post(t, e, orders, encoded(t, event(1)))
	want(orders, "orders", 503)
	if len(s.events)+len(s.beats) != 0 {
		t.Errorf("stored %v, %v", s.events, s.beats)
	}
}

// TestStrangersFillNoLog: whoever can reach the address causes a line, not one for each request.
// It names the service that the sender claims to be.
func TestStrangersFillNoLog(t *testing.T) {
	var out bytes.Buffer
	e, err := intake.NewEndpoint(intake.EndpointConfig{
		Take: new(shelf).take, Heartbeat: new(shelf).hear, Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, ingest.Path+"?service=orders%0a"+strings.Repeat("x", 200), nil)
		r.Header.Set("Authorization", "Bearer token-of-nobody-at-all")
		e.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || out.Len() > 400 {
		t.Errorf("%d lines, want 1:\n%s", n, out.String())
	}
	if text := out.String(); !strings.Contains(text, "claimed_service=") || !strings.Contains(text, "orders") || strings.Contains(text, "token-of-nobody") {
		t.Errorf("it logs %s, and not who claims to be there", text)
	}
}

// TestSendersFillNoLog: neither bad events nor a store that takes nothing cause a line for
// each request.
func TestSendersFillNoLog(t *testing.T) {
	var out bytes.Buffer
	s := &shelf{err: errors.New("disk full")}
	e, err := intake.NewEndpoint(intake.EndpointConfig{
		Senders: []intake.Sender{{Name: "orders", Token: orders, Services: []string{"orders"}}},
		Take:    s.take, Heartbeat: s.hear, Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		post(t, e, orders, []byte("{"))
		post(t, e, orders, encoded(t, event(n)))
	}
	if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "no event") || !strings.Contains(text, "disk full") {
		t.Errorf("%d lines, want one about each fault:\n%.1000s", strings.Count(text, "\n"), text)
	}
}

// TestServicesThatAreRefused: what the store rejects stays with its sender, and proves nothing
// against the others.
func TestServicesThatAreRefused(t *testing.T) {
	e, s := newEndpoint(t)
	s.fails(fmt.Errorf("%w: too many services", intake.ErrReject))
	for _, body := range [][]byte{encoded(t, event(1)), encoded(t, heartbeat.Heartbeat{ID: "b", Service: "orders", At: time.Now(), Interval: time.Minute})} {
		if w, a := post(t, e, all, body); w.Code != 403 || a.Rejected || !strings.Contains(a.Error, "too many services") {
			t.Errorf("%d %+v, want a 403 that says why", w.Code, a)
		}
	}
	if err := e.Err(); err != nil || !e.Listening() {
		t.Errorf("the endpoint takes nothing: %v", err)
	}
}

// TestEndpointRejects: what is no event gets the reason, and stays with its sender.
func TestEndpointRejects(t *testing.T) {
	e, s := newEndpoint(t)
	unknown := bytes.Replace(encoded(t, event(1)), []byte(`"overlap"`), []byte(`"new"`), 1)
	for _, c := range []struct {
		name, body string
		code       int
		want       string
	}{
		{"nothing", "", 400, "invalid event"},
		{"no JSON", "{", 400, "invalid event"},
		{"another type", `{"specversion":"1.0","type":"t"}`, 400, "type"},
		{"several", "[" + string(encoded(t, event(1))) + "]", 400, "invalid event"},
		{"an unknown verdict", string(unknown), 400, "verdict"},
		{"no heartbeat", `{"specversion":"1.0","type":"io.github.belaygo.heartbeat.v1"}`, 400, "source"},
		{"too much", strings.Repeat(" ", ingest.MaxBody) + "{}", 413, "262144 bytes"},
	} {
		w, a := post(t, e, orders, []byte(c.body))
		if w.Code != c.code || !a.Rejected || a.Taken != "" || !strings.Contains(a.Error, c.want) {
			t.Errorf("%s: answered %d %+v, want %d about %q", c.name, w.Code, a, c.code, c.want)
		}
	}
	if len(s.events)+len(s.beats) != 0 || e.Err() != nil {
		t.Errorf("stored %v, %v; %v", s.events, s.beats, e.Err())
	}
}

// TestEndpointIsBounded: beyond some requests at a time the others are asked to wait, and
// until then silence proves nothing.
func TestEndpointIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := newEndpoint(t)
		s.wait = make(chan struct{})
		var taken sync.WaitGroup
		for n := range 64 {
			token := []string{orders, all}[n%2]
			taken.Go(func() {
				if w, _ := post(t, e, token, encoded(t, event(n))); w.Code != 202 {
					t.Errorf("answered %d", w.Code)
				}
			})
		}
		synctest.Wait()
		if !e.Listening() {
			t.Error("not listening before a request was rejected")
		}
		w, a := post(t, e, late, encoded(t, event(64)))
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || a.Taken != "" || a.Rejected {
			t.Errorf("answered %d %+v", w.Code, a)
		}
		if w, _ := post(t, e, "", encoded(t, event(64))); w.Code != 401 {
			t.Errorf("without a token: answered %d", w.Code)
		}
		if e.Listening() || e.Err() != nil {
			t.Errorf("listening %t, %v: a heartbeat may have been rejected, and the store is well", e.Listening(), e.Err())
		}
		close(s.wait)
		taken.Wait()
		<-time.After(time.Minute)
		if w, _ := post(t, e, all, encoded(t, event(64))); w.Code != 202 || !e.Listening() {
			t.Errorf("afterwards: answered %d, listening %t", w.Code, e.Listening())
		}
	})
}

// TestSenderThatHasGone is no failure of the store. One that has closed its half of the
// connection can still read, and must not read a status of success.
func TestSenderThatHasGone(t *testing.T) {
	e, _ := newEndpoint(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if w, a := postWithin(gone, t, e, orders, encoded(t, event(1))); w.Code != 408 || a.Taken != "" || e.Err() != nil {
		t.Errorf("answered %d %+v, then %v", w.Code, a, e.Err())
	}
}

func TestEndpointRefusesSenders(t *testing.T) {
	_, s := newEndpoint(t)
	for want, senders := range map[string][]intake.Sender{
		"shorter than 16":       {{Name: "a", Token: "short", Services: []string{"a"}}},
		"that of another entry": {{Name: "a", Token: orders, Services: []string{"a"}}, {Name: "b", Token: orders, Services: []string{"b"}}},
		"names no service":      {{Name: "a", Token: orders}},
	} {
		_, err := intake.NewEndpoint(intake.EndpointConfig{Senders: senders, Take: s.take, Heartbeat: s.hear})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), orders) {
			t.Errorf("err = %v, want one that says %q", err, want)
		}
	}
	if _, err := intake.NewEndpoint(intake.EndpointConfig{}); err == nil {
		t.Error(fmt.Errorf("no error without Take"))
	}
}
