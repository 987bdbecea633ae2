package httpguard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/once"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

type Account struct {
	ID      int64
	Cents   int64
	Version dbguard.Version
}

// site is a server with one account.
type site struct {
	t     *testing.T
	db    *gorm.DB
	guard *guardtest.Guard
	cfg   httpguard.Config
	log   *bytes.Buffer
	ran   atomic.Int64 // handlers
}

func newSite(t *testing.T) *site {
	t.Helper()
	db := testdb.OpenSQLite(t, t.TempDir()+"/site.db")
	testdb.WantNil(t, db.AutoMigrate(&Account{}))
	testdb.WantNil(t, once.Migrate(bg, db))
	testdb.WantNil(t, db.Create(&Account{ID: 7, Cents: 1000}).Error)
	log := new(bytes.Buffer)
	return &site{
		t: t, db: db, guard: guardtest.New(t, db), log: log,
		cfg: httpguard.Config{
			Principal: func(r *http.Request) (string, error) { return r.Header.Get("User"), nil },
			Logger:    slog.New(slog.NewTextHandler(log, nil)),
		},
	}
}

// serve returns a server that has the handler at POST /pay/{id} and POST /other.
func (s *site) serve(handler http.HandlerFunc) *httptest.Server {
	s.t.Helper()
	g, err := httpguard.New(s.guard.Guard, s.cfg)
	testdb.WantNil(s.t, err)
	mux := http.NewServeMux()
	counted := g(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ran.Add(1)
		handler(w, r)
	}))
	mux.Handle("/pay/{id}", counted)
	mux.Handle("POST /other", counted)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Request-Id", r.Header.Get("Request-Id")) // of an outer middleware
		mux.ServeHTTP(w, r)
	}))
	s.t.Cleanup(server.Close)
	s.t.Cleanup(server.Client().CloseIdleConnections)
	return server
}

// charge takes a cent and says so.
func (s *site) charge(w http.ResponseWriter, r *http.Request) {
	a := Account{ID: 7}
	err := guard.Update(&a, func(a *Account) error { a.Cents--; return nil }).Run(r.Context(), guard.Tx(r.Context()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Add("Link", "<a>")
	w.Header().Add("Link", "<b>")
	w.Header().Set("Set-Cookie", "seen=1")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"left": %d}`, a.Cents)
}

func (s *site) wantCents(want int64) {
	s.t.Helper()
	var a Account
	testdb.WantNil(s.t, s.db.Take(&a, 7).Error)
	if a.Cents != want {
		s.t.Errorf("the account has %d cents, want %d", a.Cents, want)
	}
}

func (s *site) wantRan(want int64) {
	s.t.Helper()
	if got := s.ran.Load(); got != want {
		s.t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// got is a response.
type got struct {
	status int
	header http.Header
	body   string
}

// post sends a request: headers are name, value, name, value.
func post(t *testing.T, server *httptest.Server, path, body string, headers ...string) got {
	t.Helper()
	return send(t, server, http.MethodPost, path, body, headers...)
}

func send(t *testing.T, server *httptest.Server, method, path, body string, headers ...string) got {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	testdb.WantNil(t, err)
	r.Header.Set("User", "eve")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := server.Client().Do(r)
	testdb.WantNil(t, err)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	testdb.WantNil(t, err)
	return got{res.StatusCode, res.Header, string(all)}
}

func (g got) want(t *testing.T, status int, problem string) {
	t.Helper()
	if g.status != status {
		t.Fatalf("status is %d, want %d: %s", g.status, status, g.body)
	}
	if problem == "" {
		return
	}
	var p struct {
		Type   string
		Status int
	}
	if err := json.Unmarshal([]byte(g.body), &p); err != nil || g.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%q of type %q is no problem: %v", g.body, g.header.Get("Content-Type"), err)
	}
	if p.Status != status || p.Type != "https://example.com/errors#"+problem {
		t.Errorf("the problem is %+v, want %d and %s", p, status, problem)
	}
}

// TestReplay: a repeat gets the same status, headers and bytes, and runs nothing.
func TestReplay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(s.charge)
	first := post(t, server, "/pay/1", "{}", "Idempotency-Key", `"a"`, "Request-Id", "1")
	first.want(t, http.StatusCreated, "")
	again := post(t, server, "/pay/1", "{}", "Idempotency-Key", `a`, "Request-Id", "2")
	again.want(t, http.StatusCreated, "")
	if again.body != first.body || again.body != `{"left": 999}` {
		t.Errorf("bodies are %q and %q", first.body, again.body)
	}
	for name, want := range map[string][2]string{
		"Content-Type": {"application/json", "application/json"}, "Set-Cookie": {"seen=1", ""},
		"Request-Id": {"1", "2"}, "Idempotent-Replayed": {"", "true"},
	} {
		if got := [2]string{first.header.Get(name), again.header.Get(name)}; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := strings.Join(again.header.Values("Link"), " "); got != "<a> <b>" {
		t.Errorf("Link is %q", got)
	}
	s.wantRan(1)
	s.wantCents(999)
}

// TestNames: somebody else, another operation and another key are other requests. Other
// content is none.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Docs = "https://example.com/errors"
	server := s.serve(s.charge)
	post(t, server, "/pay/1", "{}", "Idempotency-Key", "a").want(t, http.StatusCreated, "")
	post(t, server, "/other", "{}", "Idempotency-Key", "a").want(t, http.StatusCreated, "")
	post(t, server, "/pay/1", "{}", "Idempotency-Key", "b").want(t, http.StatusCreated, "")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/pay/1", strings.NewReader("{}"))
	testdb.WantNil(t, err)
	r.Header.Set("User", "mallory")
	r.Header.Set("Idempotency-Key", "a")
	res, err := server.Client().Do(r)
	testdb.WantNil(t, err)
	res.Body.Close()
	if res.StatusCode != http.StatusCreated || res.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("mallory gets eve's answer: %s", res.Status)
	}
	s.wantRan(4)
	for _, other := range [][]string{{"/pay/1", "{ }"}, {"/pay/2", "{}"}, {"/pay/1?x=1", "{}"}} {
		post(t, server, other[0], other[1], "Idempotency-Key", "a").want(t, http.StatusUnprocessableEntity, "mismatch")
	}
	post(t, server, "/pay/1", "{}", "Idempotency-Key", "a", "Content-Type", "text/plain").want(t, http.StatusUnprocessableEntity, "mismatch")
	s.wantRan(4)
	s.wantCents(996)
}

// TestBadRequests: what is wrong with a request is said, and nothing runs.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Docs, s.cfg.MaxBody = "https://example.com/errors", 10
	s.cfg.Keys = func(_ *http.Request, body []byte) ([]string, error) {
		if string(body) == "bad" {
			return nil, errors.New("no account")
		}
		return nil, nil
	}
	server := s.serve(s.charge)
	post(t, server, "/pay/1", "").want(t, http.StatusBadRequest, "missing")
	for _, key := range []string{"", " ", `""`, `"a`, `"a" b`, `"a"b`, `"a\b"`, `a"b`, "a b", "a,b", "ä", `"ä"`, strings.Repeat("x", 256)} {
		post(t, server, "/pay/1", "", "Idempotency-Key", key).want(t, http.StatusBadRequest, "invalid")
	}
	post(t, server, "/pay/1", "", "Idempotency-Key", "a", "Idempotency-Key", "b").want(t, http.StatusBadRequest, "invalid")
	post(t, server, "/pay/1", "bad", "Idempotency-Key", "a").want(t, http.StatusBadRequest, "invalid")
	post(t, server, "/pay/1", strings.Repeat("x", 11), "Idempotency-Key", "a").want(t, http.StatusRequestEntityTooLarge, "long")
	s.wantRan(0)
	s.wantCents(1000)
}

// TestPasses: what needs no key is served as ever.
func TestPasses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Optional = true
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		if guard.Tx(r.Context()) != nil {
			t.Error("there is a transaction")
		}
		httpguard.Decide(r.Context(), httpguard.Done)
		httpguard.AfterCommit(r.Context(), func() { t.Error("it is called") })
		if _, ok := guard.Request(r.Context()); ok {
			t.Error("there is a request")
		}
	})
	send(t, server, http.MethodGet, "/pay/1", "", "Idempotency-Key", "a").want(t, http.StatusOK, "")
	send(t, server, http.MethodPut, "/pay/1", "", "Idempotency-Key", "a").want(t, http.StatusOK, "")
	post(t, server, "/pay/1", "").want(t, http.StatusOK, "")
	s.wantRan(3)
}

// TestDecisions: by its status an answer is stored or not, and so is what was written.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status   int
		decision httpguard.Decision // 0 = by the status
		stored   bool
		charged  bool
	}{
		"200":           {200, 0, true, true},
		"303":           {303, 0, true, true},
		"402":           {402, 0, false, false},
		"500":           {500, 0, false, false},
		"402, done":     {402, httpguard.Done, true, true},
		"402, refused":  {402, httpguard.Refused, true, false},
		"200, failed":   {200, httpguard.Failed, false, false},
		"200, nonsense": {200, 17, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			committed := 0
			server := s.serve(func(w http.ResponseWriter, r *http.Request) {
				httpguard.AfterCommit(r.Context(), func() { committed++ })
				if tt.decision != 0 {
					httpguard.Decide(r.Context(), tt.decision)
				}
				a := Account{ID: 7}
				testdb.WantNil(t, guard.Update(&a, func(a *Account) error { a.Cents--; return nil }).Run(r.Context(), guard.Tx(r.Context())))
				w.Header().Set("Set-Cookie", "seen=1")
				w.WriteHeader(tt.status)
				write(w, "answer")
			})
			server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			for n := range 2 {
				got := post(t, server, "/pay/1", "", "Idempotency-Key", "a")
				got.want(t, tt.status, "")
				replayed := got.header.Get("Idempotent-Replayed") == "true"
				if got.body != "answer" || replayed != (tt.stored && n == 1) || replayed == (got.header.Get("Set-Cookie") != "") {
					t.Errorf("answer %d is %+v", n+1, got)
				}
			}
			charged := int64(0)
			if tt.charged {
				charged = 1
			}
			s.wantCents(1000 - charged)
			if int64(committed) != charged {
				t.Errorf("%d calls after a commit, want %d", committed, charged)
			}
		})
	}
}

// TestInFlight: a repeat gets 409 while the request is served, and then the answer. With
// Wait it gets just that.
func TestInFlight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Docs = "https://example.com/errors"
	runs, end := make(chan bool), make(chan bool)
	var begin sync.Once
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		begin.Do(func() { close(runs) })
		<-end
		s.charge(w, r)
	})
	first := make(chan got)
	go func() { first <- post(t, server, "/pay/1", "", "Idempotency-Key", "a") }()
	<-runs
	busy := post(t, server, "/pay/1", "", "Idempotency-Key", "a")
	busy.want(t, http.StatusConflict, "busy")
	if busy.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	close(end)
	(<-first).want(t, http.StatusCreated, "")
	again := post(t, server, "/pay/1", "", "Idempotency-Key", "a")
	again.want(t, http.StatusCreated, "")
	if again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the answer is not replayed")
	}
	s.wantRan(1)
}

// TestForgotten: a request whose answer is purged was served all the same.
func TestForgotten(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Docs = "https://example.com/errors"
	server := s.serve(s.charge)
	post(t, server, "/pay/1", "", "Idempotency-Key", "a").want(t, http.StatusCreated, "")
	testdb.WantNil(t, s.db.Exec("DELETE FROM belay_answer").Error)
	post(t, server, "/pay/1", "", "Idempotency-Key", "a").want(t, http.StatusConflict, "forgotten")
	s.wantRan(1)
}

// TestServerErrors: nothing is committed, the client is told nothing of the reason, and the
// log does not have the key.
func TestServerErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set     func(s *site)
		handler func(s *site) http.HandlerFunc
		status  int
		problem string
	}{
		"no principal": {func(s *site) {
			s.cfg.Principal = func(*http.Request) (string, error) { return "", nil }
		}, nil, 500, "internal"},
		"principal fails": {func(s *site) {
			s.cfg.Principal = func(*http.Request) (string, error) { return "eve", errors.New("sesame") }
		}, nil, 500, "internal"},
		"no tables": {func(s *site) { testdb.WantNil(s.t, s.db.Migrator().DropTable("belay_once")) }, nil, 503, "unavailable"},
		"bad keys": {func(s *site) {
			s.cfg.Keys = func(*http.Request, []byte) ([]string, error) { return []string{""}, nil }
		}, nil, 500, "internal"},
		"too many keys": {func(s *site) {
			s.cfg.Keys = func(*http.Request, []byte) (keys []string, err error) {
				for n := range 17 {
					keys = append(keys, fmt.Sprintf("item:%d", n))
				}
				return keys, nil
			}
		}, nil, 500, "internal"},
		"answer too long": {func(s *site) { s.cfg.MaxAnswer = 5 }, nil, 500, "internal"},
		"nested": {func(*site) {}, func(s *site) http.HandlerFunc {
			g, err := httpguard.New(s.guard.Guard, s.cfg)
			testdb.WantNil(s.t, err)
			inner := g(http.HandlerFunc(s.charge))
			return func(w http.ResponseWriter, r *http.Request) {
				httpguard.Decide(r.Context(), httpguard.Failed)
				inner.ServeHTTP(w, r)
			}
		}, 500, "internal"},
		"switches protocols": {func(*site) {}, func(*site) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusSwitchingProtocols) }
		}, 500, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.cfg.Docs = "https://example.com/errors"
			tt.set(s)
			handler := s.charge
			if tt.handler != nil {
				handler = tt.handler(s)
			}
			server := s.serve(handler)
			got := post(t, server, "/pay/1", "secret body", "Idempotency-Key", "secret-key")
			got.want(t, tt.status, tt.problem)
			if strings.Contains(got.body, "sesame") || strings.Contains(s.log.String(), "secret") {
				t.Errorf("told %q, logged %q", got.body, s.log)
			}
			if s.log.Len() == 0 {
				t.Error("nothing is logged")
			}
			s.wantCents(1000)
		})
	}
}

// TestPanic: a panic is net/http's to handle, rolls back, and lets a repeat run.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.charge(w, r)
		if s.ran.Load() == 1 {
			panic(http.ErrAbortHandler)
		}
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/pay/1", http.NoBody)
	testdb.WantNil(t, err)
	r.Header.Set("User", "eve")
	r.Header.Set("Idempotency-Key", "a")
	if res, err := server.Client().Do(r); err == nil {
		res.Body.Close()
		t.Errorf("the panic is answered with %s", res.Status)
	}
	s.wantCents(1000)
	post(t, server, "/pay/1", "", "Idempotency-Key", "a").want(t, http.StatusCreated, "")
	s.wantCents(999)
}

// TestClientLeaves: the operation goes on, and the next try gets its answer.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Wait = s.cfg.Timeout
	runs, end := make(chan bool), make(chan bool)
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		close(runs)
		<-end
		if err := r.Context().Err(); err != nil {
			t.Errorf("the handler's context has ended: %v", err)
		}
		s.charge(w, r)
	})
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/pay/1", http.NoBody)
	testdb.WantNil(t, err)
	r.Header.Set("User", "eve")
	r.Header.Set("Idempotency-Key", "a")
	left := make(chan error)
	go func() {
		res, err := server.Client().Do(r)
		if err == nil {
			res.Body.Close()
		}
		left <- err
	}()
	<-runs
	leave()
	testdb.WantIs(t, <-left, context.Canceled)
	close(end)
	for {
		got := post(t, server, "/pay/1", "", "Idempotency-Key", "a")
		if got.status == http.StatusConflict { // still being served
			continue
		}
		got.want(t, http.StatusCreated, "")
		break
	}
	s.wantRan(1)
	s.wantCents(999)
}

// write writes texts, whatever becomes of them.
func write(w io.Writer, texts ...string) {
	for _, text := range texts {
		_, _ = io.WriteString(w, text)
	}
}

// TestWriter: what a handler may do with its writer.
func TestWriter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		status  int
		body    string
	}{
		"nothing":     {func(http.ResponseWriter, *http.Request) {}, 200, ""},
		"only a body": {func(w http.ResponseWriter, _ *http.Request) { write(w, "a", "b") }, 200, "ab"},
		"two statuses": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusAccepted)
		}, 201, ""},
		"no content": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent); write(w, "a") }, 204, ""},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
		}, 201, ""},
		"flush":            {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); write(w, "a") }, 200, "a"},
		"removes a header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Del("Request-Id") }, 200, ""},
		"its own length": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1")
			write(w, "a")
		}, 200, "a"},
		"reads the body": {func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, 200, "body"},
		"not to be flushed": {func(w http.ResponseWriter, _ *http.Request) {
			if http.NewResponseController(w).Flush() == nil {
				t.Error("it can be flushed")
			}
			if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
				t.Error("it can be hijacked")
			}
		}, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			server := s.serve(tt.handler)
			for range 2 {
				got := post(t, server, "/pay/1", "body", "Idempotency-Key", "a", "Request-Id", "1")
				got.want(t, tt.status, "")
				if got.body != tt.body {
					t.Errorf("body is %q, want %q", got.body, tt.body)
				}
				if name == "removes a header" && got.header.Get("Request-Id") != "" {
					t.Error("the header is there")
				}
			}
			s.wantRan(1)
		})
	}
}

// TestKeys: inside of the handler Do can be called with the keys, and only those.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.cfg.Keys = func(r *http.Request, _ []byte) ([]string, error) {
		return []string{"account:" + r.PathValue("id")}, nil
	}
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		change := guard.Update(&Account{ID: 7}, func(a *Account) error { a.Cents--; return nil })
		testdb.WantIs(t, s.guard.Apply(r.Context(), "account:8", change), guard.ErrNested)
		testdb.WantNil(t, s.guard.Apply(r.Context(), "account:7", change))
	})
	for range 2 {
		post(t, server, "/pay/7", "", "Idempotency-Key", "a").want(t, http.StatusOK, "")
	}
	s.wantCents(999)
}

// TestDownstream: the id for another service stays the same over tries.
func TestDownstream(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ids := make(map[string]int)
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		request, _ := guard.Request(r.Context())
		ids[request.Downstream("bank")]++
		w.WriteHeader(http.StatusBadGateway)
	})
	for range 2 {
		post(t, server, "/pay/7", "", "Idempotency-Key", "a").want(t, http.StatusBadGateway, "")
	}
	if len(ids) != 1 {
		t.Errorf("ids are %v, want one, twice", ids)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	who := s.cfg.Principal
	for name, cfg := range map[string]httpguard.Config{
		"no principal": {}, "timeout": {Principal: who, Timeout: -1}, "wait": {Principal: who, Wait: -1},
		"body": {Principal: who, MaxBody: -1}, "answer": {Principal: who, MaxAnswer: 1 << 24},
	} {
		if _, err := httpguard.New(s.guard.Guard, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := httpguard.New(nil, s.cfg); err == nil {
		t.Error("no error without a guard")
	}
}
